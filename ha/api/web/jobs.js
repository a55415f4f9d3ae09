// All jobs at a glance: those in trouble first, found by name, leader or state, sorted by any column.

import { get } from "/api.js";
import { age, badge, el, kind, rank, rate } from "/dom.js";
import { distance, isReplica, sourceOf } from "/inside.js";

const AGAIN_MS = 200; // between two drawings at least: of a thousand jobs some change every second
const MOST_WHYS = 10; // jobs in trouble whose cause is asked for: each costs some fifteen calls of a store
const ASK_AGAIN_MS = 10000; // after a request that failed, and for how far a replica is
const OFTEN = 3; // failures in an hour from which on a job that is led is in trouble, even if each restart helped

const NEEDS = [["overdue", (row) => (row.overdue ? 1 : 0)], ["failures in a row", (row) => row.next_try?.failures], ["not guarded", (row) => row.unguarded], ["not exactly once", (row) => row.repeated], ["paused", (row) => (row.paused ? 1 : 0)], ["barred", (row) => row.barred.length], ["standbys with another command", (row) => row.others.length]];
const notes = (row) => NEEDS.map(([said, count]) => [said, count(row)]).filter(([, count]) => count);

const counted = (number, one) => (number ? [`${number} ${one}${number === 1 ? "" : "s"}`] : []);
const hour = ({ last_hour: found }) => (found ? [...counted(found.failures, "failure"), ...counted(found.takeovers, "takeover")] : []);

// Label, cell, what it is sorted by, and style.
const COLUMNS = [
  ["Job", (row) => el("span", {}, el("a", { href: `#/jobs/${encodeURIComponent(row.job)}` }, row.job), row.program ? el("span", { class: "program" }, row.program) : null), (row) => row.job, "name"],
  ["State", (row) => el("span", {}, badge(row.state), notes(row).map(([said, count]) => el("span", { class: "note" }, count > 1 ? `${count} ${said}` : said)), row.since ? el("span", { class: "note" }, "for ", age(row.since)) : null),
    (row) => worst(row), "state-of"],
  ["Leader", (row) => row.holder || el("span", { class: "soft" }, row.last_holder ? `none; last ${row.last_holder}` : "none"), (row) => row.holder || ""],
  ["Last hour", (row) => hour(row).join(", ") || "-", (row) => (row.last_hour ? row.last_hour.failures + row.last_hour.takeovers : 0)],
  ["Epoch", (row) => row.epoch, (row) => row.epoch, "number wide"],
  ["Lease", (row) => row.lease, (row) => row.lease],
  ["Checkpoint", (row) => age(row.checkpoint_at), (row) => row.checkpoint_at || ""],
  ["Rows a second", (row) => rate(row.rows_per_second), (row) => row.rows_per_second ?? -1, "number"],
  ["Contenders", (row) => (row.contenders === null ? "not known" : row.contenders.join(", ") || "none"), (row) => (row.contenders || []).length, "wide"],
];

const trouble = (row) => row.overdue || ["damaged", "unreachable"].includes(row.lease) || kind(row.state) === "bad" || (row.next_try && row.next_try.failures > 1) || (row.holder && row.last_hour?.failures >= OFTEN);
const worst = (row) => (trouble(row) ? 0 : rank(row.state));
const by = (one, other) => (typeof one === "number" ? one - other : String(one ?? "").localeCompare(String(other ?? "")));

async function cause(job) {
  const found = await get(`/jobs/${encodeURIComponent(job)}/story`);
  const failure = found.last_failure;
  return failure ? `${failure.class}: ${failure.message}` : found.said[0] || "";
}

export class JobList {
  constructor(main) {
    this.rows = new Map();
    this.drawn = new Map(); // by job its row of the table, and what that shows
    this.whys = new Map(); // by job in trouble the cause, and of what it is one
    this.words = "";
    this.state = "";
    this.column = COLUMNS[1];
    this.down = false;
    this.count = el("span", { class: "soft", role: "status" });
    this.search = el("input", { type: "search", placeholder: "Job, leader or host", "aria-label": "Find a job, leader or host",
      oninput: (event) => { this.words = event.target.value.toLowerCase(); this.draw(); } });
    this.chips = el("div", { class: "buttons chips", role: "group", "aria-label": "States" });
    this.heads = COLUMNS.map((each) => el("th", { scope: "col", class: each[3] }, el("button", { type: "button", class: "sort", onclick: () => this.sort(each) }, each[0])));
    this.body = el("tbody");
    this.none = el("p", { class: "soft", hidden: "" });
    this.stores = el("p", { class: "stores soft" });
    this.where = null;
    main.replaceChildren(
      el("div", { class: "title" }, el("h2", {}, "Jobs"), this.count, this.search), this.stores, this.chips,
      el("section", {}, el("div", { class: "scroll" }, el("table", { class: "cards dense" }, el("thead", {}, el("tr", {}, this.heads)), this.body)), this.none));
  }

  // Of the stream of events; the drawing comes when it pauses.
  event(name, data) {
    if (name === "job") this.rows.set(data.job, data);
    if (name === "gone") this.rows.delete(data.job);
    if (name === "jobs") this.where = data;
    this.timer ??= setTimeout(() => { this.timer = null; this.draw(); }, this.drawn.size ? AGAIN_MS : 0);
  }

  sort(column) {
    this.down = this.column === column && !this.down;
    this.column = column;
    this.draw();
  }

  draw() {
    const all = [...this.rows.values()];
    const states = new Map([["", all.length], ["trouble", all.filter(trouble).length]]);
    all.forEach((row) => states.set(row.state || "unknown", (states.get(row.state || "unknown") || 0) + 1));
    const bad = states.get("trouble");
    document.title = bad ? `(${bad}) Hybrid HA` : "Hybrid HA";
    const said = `${all.length} ${all.length === 1 ? "job" : "jobs"}, ${bad ? `${bad} in trouble` : "none in trouble"}`;
    this.chips.replaceChildren(...[...states].filter(([name, count]) => count || name === this.state).map(([name, count]) => el("button", {
      type: "button", "aria-pressed": String(name === this.state), onclick: () => { this.state = name; this.draw(); },
    }, `${name || "all"} ${count}`)));
    const shown = all.filter((row) => this.fits(row)).sort((a, b) => this.order(a, b));
    this.count.textContent = shown.length === all.length ? said : `${shown.length} of ${said}`;
    this.none.hidden = shown.length > 0;
    this.none.textContent = all.length ? "No job is like that." : "No job has used this root yet.";
    COLUMNS.forEach((each, number) => this.heads[number].setAttribute("aria-sort", each !== this.column ? "none" : this.down ? "descending" : "ascending"));
    this.told(all);
    this.place(shown.map((row) => this.row(row)));
    [...shown.filter(trouble), ...shown.filter((row) => isReplica(row.job) && !trouble(row))].slice(0, MOST_WHYS).forEach((row) => this.ask(row));
    for (const job of this.drawn.keys()) if (!this.rows.has(job)) this.drawn.delete(job);
    for (const [job] of this.whys) if (!this.rows.has(job) || !(isReplica(job) || trouble(this.rows.get(job)))) this.whys.delete(job);
  }

  // A replica stands below its job, and both stand where the worse of them belongs.
  order(one, other) {
    const value = (row) => {
      const pair = [sourceOf(row.job), `${sourceOf(row.job)}.replica`].map((job) => this.rows.get(job)).filter(Boolean);
      return this.column === COLUMNS[1] ? Math.min(...pair.map(worst)) : this.column[2](pair[0]);
    };
    const source = sourceOf(one.job).localeCompare(sourceOf(other.job));
    return (this.down ? -1 : 1) * (by(value(one), value(other)) || (this.column === COLUMNS[0] ? source : 0)) || source || isReplica(one.job) - isReplica(other.job);
  }

  // Of a job in trouble: its last failure, or else the first sentence of `ha job show`. Of a replica: how far it is.
  async ask(row) {
    const of = JSON.stringify([row.state, row.epoch, row.next_try, row.lease, row.last_hour]);
    const known = this.whys.get(row.job) || { of: "", why: "" };
    if (known.of === of) return;
    this.whys.set(row.job, { of, why: known.why });
    const found = await (trouble(row) ? cause(row.job) : distance(row.job)).catch(() => null); // the stream says what is wrong
    if (found !== null) this.whys.set(row.job, { of, why: found });
    if (found === null || !trouble(row)) setTimeout(() => this.forget(row.job, of), ASK_AGAIN_MS);
    this.event("", null); // it is drawn with the next one
  }

  forget(job, of) {
    const known = this.whys.get(job);
    if (!this.body.isConnected || known?.of !== of) return;
    this.whys.set(job, { of: "", why: known.why });
    this.event("", null);
  }

  // Contenders announce themselves in ZooKeeper alone, so they are not known while it does not answer.
  told(all) {
    if (!this.where) return;
    const lost = all.filter((row) => row.lease === "unreachable").length;
    const mine = all.filter((row) => row.lease !== "not-yours");
    const silent = this.where.zookeeper && mine.length && mine.every((row) => row.contenders === null);
    const said = [
      el("span", {}, this.where.files, lost ? el("span", { class: "note bad" }, `${lost} jobs lie where it does not answer`) : null),
      this.where.zookeeper ? el("span", {}, `ZooKeeper ${this.where.zookeeper}`, silent ? el("span", { class: "note bad" }, "does not answer") : null) : el("span", {}, "no ZooKeeper"),
    ];
    this.stores.replaceChildren(said[0], " · ", said[1]);
  }

  fits(row) {
    if (this.state === "trouble" ? !trouble(row) : this.state && (row.state || "unknown") !== this.state) return false;
    return [row.job, row.holder || "", ...(row.contenders || [])].some((each) => each.toLowerCase().includes(this.words));
  }

  // A row is made again only if its job has changed.
  row(row) {
    const why = this.whys.get(row.job)?.why || "";
    const said = JSON.stringify([row, why]);
    const known = this.drawn.get(row.job);
    if (known?.said === said) return known.made;
    const made = el("tr", {}, COLUMNS.map(([label, cell, , style]) => el("td", { class: style, "data-label": label }, cell(row) ?? "-")));
    if (why) made.querySelector(".state-of").append(el("div", { class: "why", title: why }, why));
    this.drawn.set(row.job, { said, made });
    return made;
  }

  // Rows that are where they belong are not touched: what has the focus keeps it.
  place(rows) {
    const focused = document.activeElement?.getAttribute("href");
    rows.forEach((made, number) => {
      if (this.body.children[number] !== made) this.body.insertBefore(made, this.body.children[number] || null);
    });
    while (this.body.children.length > rows.length) this.body.lastChild.remove();
    if (focused && !document.activeElement?.getAttribute("href")) [...this.body.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
  }
}
