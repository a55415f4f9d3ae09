// All jobs at a glance: those in trouble first.

import { age, badge, el, rank, rate, table } from "/dom.js";

const columns = [
  ["Job", (row) => el("a", { href: `#/jobs/${encodeURIComponent(row.job)}` }, row.job), "name"],
  ["State", (row) => badge(row.state)],
  ["Leader", (row) => row.holder || el("span", { class: "soft" }, "nobody")],
  ["Epoch", (row) => row.epoch, "number"],
  ["Lease", (row) => row.lease],
  ["Newest checkpoint", (row) => age(row.checkpoint_at)],
  ["Rows a second", (row) => rate(row.rows_per_second), "number"],
  ["Contenders", (row) => (row.contenders === null ? "not known" : row.contenders.join(", ") || "none"), "wide"],
];

const worst = (row) => (row.lease === "damaged" ? 0 : rank(row.state));

export function showJobs(main, rows) {
  const sorted = [...rows].sort((a, b) => worst(a) - worst(b) || a.job.localeCompare(b.job));
  const trouble = sorted.filter((each) => worst(each) === 0).length;
  const said = rows.length
    ? `${rows.length} ${rows.length === 1 ? "job" : "jobs"}, ${trouble ? `${trouble} in trouble` : "none in trouble"}`
    : "No job has used this root yet.";
  document.title = trouble ? `(${trouble}) Hybrid HA` : "Hybrid HA";
  const focused = document.activeElement?.getAttribute("href");
  main.replaceChildren(el("div", { class: "title" }, el("h2", {}, "Jobs"), el("span", { class: "soft" }, said)));
  if (rows.length) main.append(el("section", {}, table(columns, sorted, true)));
  if (focused) [...main.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
}
