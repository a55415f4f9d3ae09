// Looks into the checkpoint of a query, and at a replica. A look costs the store many calls: it is taken when asked for.

import { get } from "/api.js";
import { age, bytes, count, el, table } from "/dom.js";

const failed = (error) => el("p", { role: "alert" }, error.message);
const condition = (row) => el("span", { class: `state ${row.condition.startsWith("restorable") ? "good" : ["damaged", "altered"].includes(row.condition) ? "bad" : "calm"}` }, row.condition);
const span = (row) => (row.first === row.last ? `${row.first}` : `${row.first} to ${row.last}`);
const skew = (found) => (found ? `${found.ratio} times the mean, in partition ${found.partition}` : "-");

export function inspection(job, query) {
  const inside = el("div");
  const look = async () => {
    inside.replaceChildren(el("p", { class: "soft" }, "Looking into it …"));
    try {
      const found = await get(`/jobs/${encodeURIComponent(job)}/checkpoints/${encodeURIComponent(query)}`);
      inside.replaceChildren(...report(found), el("button", { type: "button", onclick: look }, "Look again"));
    } catch (error) {
      inside.replaceChildren(failed(error));
    }
  };
  const made = el("details", { ontoggle: () => { if (made.open) look(); } }, el("summary", {}, query), inside);
  return made;
}

function report(found) {
  const batches = [
    ["Batches", span, "name"], ["Condition", condition], ["Missing", (row) => row.missing || "-", "mono wide"], ["Why", (row) => row.reason || "-", "wide"],
  ];
  const stores = [
    ["Operator", (row) => `${row.operator.id} ${row.operator.name}`, "name"], ["Store", (row) => row.name],
    ["Partitions", (row) => count(row.partitions), "number"], ["Keys", (row) => count(row.keys), "number"],
    ["Bytes", (row) => bytes(row.bytes), "number"], ["Replayed", (row) => count(row.replayed), "number"], ["Skew", (row) => skew(row.byte_skew), "wide"],
  ];
  const rows = found.operators.flatMap((operator) => operator.stores.map((store) => ({ operator, ...store })));
  const said = found.batch === null ? "No batch is committed." : [
    `A restart goes on after batch ${count(found.batch)} and reads ${count(found.files)} files, ${bytes(found.bytes)}.`,
    found.format ? `State: ${found.format}, ${count(found.partitions)} partitions.` : "It has no state.",
    found.watermark_ms ? `Watermark: ${new Date(found.watermark_ms).toISOString()}.` : "",
  ].filter(Boolean).join(" ");
  return [el("p", {}, said), table(batches, [...found.batches].reverse(), true), rows.length ? table(stores, rows, true) : null].filter((each) => each !== null);
}

const SUFFIX = ".replica";
export const isReplica = (job) => job.endsWith(SUFFIX);
export const sourceOf = (job) => (isReplica(job) ? job.slice(0, -SUFFIX.length) : job);

// One line on how far a replica is.
export async function distance(job) {
  const found = await get(`/jobs/${encodeURIComponent(job)}/replica`);
  const problem = found.queries.map((each) => each.problem).find(Boolean);
  const behind = Math.max(0, ...found.queries.map((each) => each.behind));
  if (found.promoted) return "This replica was promoted.";
  if (!found.replicated) return "No process replicates it now.";
  return problem || (behind ? `The replica is ${behind} ${behind === 1 ? "batch" : "batches"} behind.` : "The replica has all batches.");
}

export async function replica(job) {
  try {
    const found = await get(`/jobs/${encodeURIComponent(job)}/replica`);
    const columns = [
      ["Query", (row) => row.query, "name"], ["Batch", (row) => count(row.batch), "number"], ["Behind", (row) => count(row.behind), "number"],
      ["Had all", (row) => age(row.level_at)], ["Trouble", (row) => row.problem || "-", "wide"],
    ];
    const state = found.promoted ? "It was promoted." : "It can be promoted to the batches below.";
    return [el("p", {}, `Replica of ${found.source}. ${state}`), table(columns, found.queries, true)];
  } catch (error) {
    return [failed(error)];
  }
}
