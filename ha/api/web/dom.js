// Elements, states and times. Text from elsewhere becomes text nodes only: nothing of it is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((each) => each !== null).map((each) => (each instanceof Node ? each : String(each))));
  return made;
}

export const el = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
export const svg = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);

const KINDS = {
  RUNNING: "good", FINISHED: "calm", CANCELED: "calm", CREATED: "calm", INITIALIZING: "busy",
  RECONCILING: "busy", RESTARTING: "busy", STARTING: "busy", CANCELLING: "busy", SUSPENDED: "bad", FAILING: "bad", FAILED: "bad",
};
const ORDER = ["bad", "busy", "good", "calm"];

export const kind = (state) => KINDS[(state || "").toUpperCase()] || (state ? "calm" : "bad");
export const rank = (state) => ORDER.indexOf(kind(state));
export const badge = (state) => el("span", { class: `state ${kind(state)}` }, state || "unknown");

// The server's clock, as far as its answers say it: ages do not depend on the browser's.
let ahead = 0;
export function heard(date) {
  const at = Date.parse(date || "");
  if (!Number.isNaN(at)) ahead = at - Date.now();
}
export const present = () => Date.now() + ahead;

export function duration(ms) {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} d ${Math.floor((seconds % 86400) / 3600)} h`;
}

// How long a batch took: short ones in milliseconds.
export const took = (ms) => (ms === null ? "-" : ms < 10000 ? `${ms} ms` : duration(ms));

// A time whose age is written anew every second.
export function age(at) {
  const parsed = Date.parse(at || "");
  if (Number.isNaN(parsed)) return el("span", { class: "soft" }, "-");
  return el("time", { datetime: at, title: at, "data-since": parsed }, duration(present() - parsed));
}

export function tick() {
  for (const each of document.querySelectorAll("time[data-since]")) {
    each.textContent = duration(present() - Number(each.dataset.since));
  }
}
setInterval(tick, 1000);

export const bytes = (number) => {
  if (number === null) return "-";
  const unit = number < 1024 ? 0 : Math.min(4, Math.floor(Math.log2(number) / 10));
  return `${(number / 1024 ** unit).toFixed(unit ? 1 : 0)} ${["B", "KiB", "MiB", "GiB", "TiB"][unit]}`;
};
export const count = (number) => (number === null ? "-" : number.toLocaleString("en"));

export const rate = (number) => (number === null ? "-" : count(number < 10 ? Math.round(number * 10) / 10 : Math.round(number)));

export function table(columns, rows, cards = false) {
  const cell = (row) => ([label, value, style]) => el("td", { class: style, "data-label": label }, value(row) ?? "-");
  return el("div", { class: "scroll" }, el("table", { class: cards ? "cards" : null },
    el("thead", {}, el("tr", {}, columns.map(([label, , style]) => el("th", { scope: "col", class: style }, label)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, columns.map(cell(row)))))));
}
