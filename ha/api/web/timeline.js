// The timeline of a job: one bar for each leadership, by contender, and a mark for each fault.

import { duration, el, present, svg } from "/dom.js";

const ROW = 30;
const RIGHT = 16;
const MOST = 40;

const clip = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

export function timeline(history, exceptions) {
  const WIDTH = Math.max(300, document.getElementById("main").clientWidth - 70);
  const LEFT = WIDTH < 600 ? 70 : 150;
  const grants = history.filter((each) => each.at && each.contender).slice(-MOST);
  if (!grants.length) return el("p", { class: "soft" }, "No leadership is recorded yet.");
  const times = grants.map((each) => Date.parse(each.at));
  const last = grants[grants.length - 1];
  const faults = exceptions.map((each) => [Date.parse(each.at || ""), each]).filter(([at]) => at >= times[0]);
  const end = Math.max(last.ended ? times[times.length - 1] : present(), ...faults.map(([at]) => at), times[0] + 1000);
  const x = (at) => LEFT + ((at - times[0]) / (end - times[0])) * (WIDTH - LEFT - RIGHT);
  const names = [...new Set(grants.map((each) => each.contender))];
  const height = names.length * ROW + ROW * 2;
  const y = (name) => names.indexOf(name) * ROW + 4;
  const picture = svg("svg", {
    viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, height, role: "img",
    "aria-label": `${grants.length} leaderships of ${names.length} contenders and ${faults.length} faults`,
  });
  names.forEach((name) => picture.append(
    svg("text", { x: 0, y: y(name) + 18 }, clip(name, LEFT / 8)),
    svg("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y(name) + 26, y2: y(name) + 26 })));
  grants.forEach((each, number) => picture.append(bar(each, x(times[number]), x(times[number + 1] ?? end), y(each.contender))));
  const below = names.length * ROW;
  picture.append(svg("text", { x: 0, y: below + 20 }, "faults"));
  faults.forEach(([at, each]) => picture.append(svg("path",
    { class: "fault", d: `M${x(at)} ${below + 6}l6 12h-12z` },
    svg("title", {}, `${each.at} ${each.class}: ${clip(each.message, 200)}`))));
  picture.append(
    svg("text", { class: "soft", x: LEFT, y: height - 6 }, grants[0].at),
    svg("text", { class: "soft", x: WIDTH - RIGHT, y: height - 6, "text-anchor": "end" }, duration(end - times[0])));
  return picture;
}

function bar(grant, from, to, top) {
  const said = `epoch ${grant.epoch}, since ${grant.at}, because ${grant.reason}; ${grant.ended || "leads"}`;
  const width = Math.max(3, to - from - 2);
  return svg("g", {}, svg("title", {}, said),
    svg("rect", { class: `bar ${grant.ended ? "" : "now"}`, x: from, y: top, width, height: 22, rx: 4 }),
    width > 34 ? svg("text", { class: grant.ended ? null : "on-bar", x: from + 6, y: top + 16 }, grant.epoch) : null);
}
