// One job: facts, requests, timeline, queries, checkpoints and failures. Each part is loaded when it has changed.

import { get } from "/api.js";
import { BAD, VERBS, possible, confirm, drain } from "/ask.js";
import { batches } from "/batches.js";
import { age, badge, bytes, count, el, rate, table, took } from "/dom.js";
import { graph } from "/graph.js";
import { inspection, isReplica, replica } from "/inside.js";
import { timeline } from "/timeline.js";

const REPLICA_MS = 10000;

const coded = (text) => text.split("`").map((each, number) => (number % 2 ? el("code", {}, each) : each));

// An address that a leader has published: a link only where a browser can go.
const link = (at) => (/^https?:\/\//.test(at) ? el("a", { href: at, rel: "noreferrer", target: "_blank" }, at) : at);

export class JobPage {
  constructor(main, job) {
    this.job = job;
    this.known = { history: [], exceptions: [] };
    this.title = el("div", { class: "title" });
    this.said = el("p", { role: "status", class: "soft", hidden: "" });
    this.facts = el("dl", { class: "facts" });
    this.story = el("div", { id: "story" });
    this.parts = {};
    this.looks = new Map(); // each query's look into its checkpoint, which stays open when another query becomes known
    const part = (name, title) => el("section", { id: name }, el("h2", {}, title), (this.parts[name] = el("div", {}, "…")));
    main.replaceChildren(
      el("p", {}, el("a", { href: "#/" }, "← All jobs")), this.title, this.said, el("section", {}, this.facts, this.story),
      part("timeline", "Leaderships and faults"), part("queries", "Queries"),
      ...(isReplica(job) ? [part("replica", "Replica")] : []),
      part("checkpoints", "Checkpoints"), part("inside", "Inside the checkpoints"), part("exceptions", "Failures"), part("logs", "Output"));
    this.parts.logs.replaceChildren(this.log());
    document.title = `${job} - Hybrid HA`;
    this.follow();
  }

  // A replicator writes down how far it is; no event tells of that.
  async follow() {
    const place = this.parts.replica;
    if (!place) return;
    place.replaceChildren(...(await replica(this.job)));
    setTimeout(() => { if (place.isConnected) this.follow(); }, REPLICA_MS);
  }

  // Loaded when a person opens it, and again each time: it may be long.
  log() {
    const place = el("div", {}, "…");
    return el("details", { ontoggle: async (event) => {
      if (!event.target.open) return;
      try {
        const found = await get(`/jobs/${encodeURIComponent(this.job)}/logs`);
        place.replaceChildren(el("p", { class: "soft" }, `${found.path} on ${found.host}`), el("pre", {}, found.text || "It has written nothing yet."));
      } catch (error) {
        place.replaceChildren(el("p", { role: "alert" }, error.message));
      }
    } }, el("summary", {}, "Of its newest run on the host of this page"), place);
  }

  inside() {
    const named = new Set([...(this.known.checkpoints || []), ...(this.known.queries?.queries || [])].map((each) => each.query));
    const names = [...named].sort();
    if (this.inspected === names.join()) return;
    this.inspected = names.join();
    for (const query of names) if (!this.looks.has(query)) this.looks.set(query, inspection(this.job, query));
    const none = el("p", { class: "soft" }, "No query is known yet.");
    this.parts.inside.replaceChildren(...(names.length ? names.map((query) => this.looks.get(query)) : [none]));
  }

  show(row) {
    if (!this.buttons) {
      this.buttons = VERBS.map((each) => el("button", {
        type: "button", class: BAD.includes(each[0]) ? "bad" : null, onclick: () => confirm(this.job, each, (text) => this.say(text)),
      }, each[1]));
      this.drain = el("button", { type: "button", class: "bad", onclick: () => drain(this.holder, (text) => this.say(text)) }, "Drain its host");
      this.state = el("span");
      this.title.replaceChildren(el("h2", {}, this.job), this.state, el("div", { class: "buttons" }, this.buttons, this.drain));
    }
    this.holder = row.holder;
    this.drain.disabled = !row.holder;
    this.buttons.forEach((each, number) => { each.disabled = !possible(VERBS[number][0], row); });
    this.state.replaceChildren(badge(row.state));
    const facts = [
      ["Leader", row.holder || "none"], ["Epoch", row.epoch], ["Lease", row.lease], ["Newest checkpoint", age(row.checkpoint_at)],
      ["Rows a second", rate(row.rows_per_second)],
      ["Contenders", row.contenders === null ? "not known" : row.contenders.join(", ") || "none"],
    ];
    if (row.since) facts.splice(1, 0, ["For", age(row.since)]);
    if (row.program) facts.push(["Runs", row.program]);
    this.tell();
    this.facts.replaceChildren(...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value ?? "-"))));
  }

  // What a person has to know and may do now: the sentences of `ha job show`.
  async tell() {
    const found = await get(`/jobs/${encodeURIComponent(this.job)}/story`).catch(() => null);
    if (!found) return; // the stream says what is wrong
    const failure = found.last_failure;
    const lines = [...found.said, ...found.under_way.map((each) => `Under way: ${each}`),
      ...found.requests.map((each) => `${each.by || "An operator"} asked to ${each.verb}: ${each.state}. ${each.said}`),
      ...(failure ? [`Last failure, ${failure.at || "at an unknown time"}: ${failure.class} on ${failure.host || "an unknown host"}: ${failure.message}`] : [])];
    const facts = [
      ...(found.led_since ? [["Has led for", age(found.led_since)]] : []),
      ...(found.program ? [["Program", `version ${found.program.version}, by ${found.program.by || "?"}`]] : []),
      ...Object.entries(found.endpoints).map(([name, at]) => [name, link(at)]),
    ];
    this.story.replaceChildren(
      el("dl", { class: "facts" }, facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))),
      el("ul", {}, lines.map((each) => el("li", {}, coded(each)))),
      el("details", {}, el("summary", {}, "What you can do now"), el("ul", {}, found.possible.map((each) => el("li", {}, coded(each))))));
  }

  say(text) {
    this.said.hidden = false;
    this.said.textContent = text;
  }

  async changed(parts) {
    await Promise.all(parts.map(async (name) => {
      try {
        this.known[name] = await get(`/jobs/${encodeURIComponent(this.job)}/${name}`);
        this.draw(name);
      } catch (error) {
        (this.parts[name] || this.parts.timeline).replaceChildren(el("p", { role: "alert" }, error.message));
      }
    }));
  }

  draw(name) {
    if (name === "history" || name === "exceptions") {
      redraw(this.parts.timeline, timeline(this.known.history, this.known.exceptions), grants(this.known.history));
    }
    if (name === "exceptions") redraw(this.parts.exceptions, ...failures(this.known.exceptions));
    if (name === "checkpoints") redraw(this.parts.checkpoints, checkpoints(this.known.checkpoints));
    if (name === "checkpoints" || name === "queries") this.inside();
    if (name === "queries") redraw(this.parts.queries, ...queries(this.known.queries));
  }
}

function grants(history) {
  const columns = [
    ["Epoch", (row) => row.epoch, "number"], ["Since", (row) => row.at], ["Contender", (row) => row.contender],
    ["Because", (row) => row.reason], ["Ended", (row) => row.ended || "leads"], ["Asked by", (row) => row.by],
  ];
  return el("details", {}, el("summary", {}, `All ${history.length} leaderships`), table(columns, [...history].reverse(), true));
}

function queries(found) {
  const columns = [
    ["Query", (row) => row.query, "name"], ["State", (row) => badge(row.state)], ["Region", (row) => row.region, "number"],
    ["Restarts", (row) => count(row.restarts), "number"], ["Reads", (row) => row.reads.join(", ") || "-"],
    ["Writes", (row) => row.writes.join(", ") || "-"], ["Last error", (row) => row.error || "-", "wide"],
  ];
  const old = found.queries.length && (!found.led || found.states_of_epoch !== found.epoch);
  const note = old ? el("p", { class: "soft" }, `These are the last states of epoch ${found.states_of_epoch ?? "-"}.`) : null;
  const list = found.queries.length ? table(columns, found.queries, true) : null;
  return [note, graph(found.queries), list].filter((each) => each !== null);
}

function checkpoints(found) {
  if (!found.length) return el("p", { class: "soft" }, "No checkpoint is published yet.");
  const columns = [
    ["Query", (row) => row.query, "name"], ["Batch", (row) => count(row.batch), "number"], ["Id", (row) => row.id, "number"],
    ["Duration", (row) => took(row.duration_ms), "number"],
    ["Rows", (row) => count(row.rows), "number"], ["Rows a second", (row) => rate(row.rows_per_second), "number"],
    ["State rows", (row) => count(row.state_rows), "number"],
    ["State size", (row) => bytes(row.state_bytes), "number"], ["Offsets", (row) => row.offsets || "-", "mono wide"],
  ];
  const newest = new Map(found.map((each) => [each.query, each]));
  const kept = el("details", {}, el("summary", {}, `All ${found.length} that are kept`), table(columns, [...found].reverse(), true));
  return el("div", {}, table(columns, [...newest.values()], true), batches(found), kept);
}

// What a person has opened stays open when its part is drawn anew.
function redraw(place, ...children) {
  const open = new Set([...place.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  place.replaceChildren(...children);
  for (const each of place.querySelectorAll("summary")) each.parentElement.open = open.has(each.textContent);
}

function failures(found) {
  if (!found.length) return [el("p", { class: "soft" }, "No failure is known.")];
  return [...found].reverse().map((each) => el("details", {},
    el("summary", {}, el("strong", {}, each.class), ` ${each.message} `,
      el("span", { class: "soft" }, `${[each.at, each.query, each.host, `epoch ${each.epoch}`].filter(Boolean).join(", ")}`)),
    each.trace ? el("pre", {}, each.trace) : null, each.dump ? el("pre", {}, each.dump) : null,
    each.trace || each.dump ? null : el("p", { class: "soft" }, "It has no trace.")));
}
