// Dialogs: the token, and the confirmation of a request, which is then followed until it has ended.

import { get, post, setToken, token } from "/api.js";
import { el } from "/dom.js";

const FOLLOW_MS = 700;
const FINAL = ["done", "refused", "failed", "unknown"];
const OVER = ["FINISHED", "CANCELED", "FAILED"];

const TO = ["to", "Where", "a new directory as a URI; without one the savepoint is kept among the job's own"];

// The verb, its button, the question, what will happen, what else can be said, and whether it is an operation: a process
// of its own carries it out, and no leader is asked.
export const VERBS = [
  ["savepoint", "Savepoint", "Take a savepoint of", "All its queries are saved at one consistent cut. The job goes on.", [TO]],
  ["restart", "Restart", "Restart", "Its command is started again, on the same host and in the same epoch.", []],
  ["restart-query", "Restart a query", "Restart a query of", "It is started again, with those that it is connected to. The others go on.",
    [["query", "Which", "its name, as the table of the queries has it"]]],
  ["pause", "Pause", "Pause", "Its leader stays, and no process takes over, even if the leader dies, until somebody resumes the job.", []],
  ["resume", "Resume", "Resume", "The pause ends: standbys take over again when they must.", []],
  ["handover", "Hand over", "Hand over", "Its command is stopped, and a standby leads and starts it there. It takes seconds.",
    [["to", "To", "a contender; without one, any standby"]], true],
  ["rewind", "Rewind", "Rewind a query of", "The query goes back to a batch that Spark retains, and resumes with the next one. `ha checkpoint rewind --undo` takes that back.",
    [["query", "Which", "its name"], ["to", "To", "the newest batch that it has done then"], ["outputs", "Outputs", "aside: newer batches are set aside; keep: readers keep them"]], true],
  ["stop-with-savepoint", "Save and stop", "Save and stop",
    "Its queries are stopped after their batches and saved, and the job has FINISHED. Without a savepoint it goes on.", [TO]],
  ["stop", "Stop", "Stop", "Its command is asked to end, and the job has FINISHED. No leader runs it again.", []],
  ["cancel", "Cancel", "Cancel", "Its command is stopped, and the job is CANCELED. No leader runs it again.", []],
];

export const BAD = ["stop", "cancel", "stop-with-savepoint"];
export function possible(verb, row) {
  if (verb === "rewind") return row.holder === null; // it leads the job meanwhile
  if (OVER.includes(row.state)) return false;
  return verb === "resume" ? row.paused !== null : verb === "pause" ? row.paused === null : row.holder !== null;
}

const hint = (text) => el("span", { class: "soft" }, `(${text})`);

function open(title, text, { confirm, danger = false, fields = [], act }) {
  const dialog = document.getElementById("dialog");
  const failure = el("p", { role: "alert" });
  const input = el("input", { type: "password", name: "token", autocomplete: "off", value: token() });
  const given = fields.map(([name]) => el("input", { type: "text", name, autocomplete: "off", spellcheck: "false" }));
  const button = el("button", { type: "submit", class: danger ? "bad" : null }, confirm);
  const form = el("form", { method: "dialog", onsubmit: async (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    button.disabled = true;
    try {
      await act(Object.fromEntries(given.map((each) => [each.name, each.value.trim()]).filter(([, said]) => said)));
      dialog.close();
    } catch (error) {
      failure.textContent = error.message;
      button.disabled = false;
    }
  } },
  el("h2", { id: "dialog-title" }, title), el("p", {}, text),
  fields.map(([, label, text], number) => el("label", {}, `${label} `, hint(text), given[number])),
  el("label", {}, "Token ", hint("kept until this tab is closed"), input),
  failure,
  el("div", { class: "buttons" }, button, el("button", { type: "button", onclick: () => dialog.close() }, "Leave it")));
  dialog.replaceChildren(form);
  dialog.showModal();
}

export function askToken(then) {
  open("Token", "A token of the role read shows this page where reading needs one; one of the role operate allows requests.", {
    confirm: "Use it", act: async () => then(),
  });
}

// The id is made once for each dialog: if the answer is lost, asking again is asking once.
export function confirm(job, [verb, button, ask, text, fields, own], say) {
  const place = `/jobs/${encodeURIComponent(job)}/${own ? "operations" : "requests"}`;
  const id = `page-${Date.now()}-${crypto.getRandomValues(new Uint32Array(1))[0].toString(16)}`;
  open(`${ask} ${job}?`, text, {
    confirm: button, danger: BAD.includes(verb), fields,
    act: async (given) => {
      if (verb === "rewind" && given.to) given.to = Number(given.to);
      follow(place, await post(place, { verb, id, arguments: given }), say);
    },
  });
}

// Of a host that is to lead nothing more.
export function drain(host, say) {
  open(`Drain ${host}?`, "Its jobs are handed over to other hosts one by one, and it leads none for a day, or until `ha host undrain`.", {
    confirm: "Drain", danger: true, fields: [["reason", "Why", "for people"]],
    act: async (given) => {
      const place = `/hosts/${encodeURIComponent(host)}`;
      let found = await post(`${place}/drain`, given);
      (async () => {
        while (found.running) {
          say(`${host} is being drained.`);
          await new Promise((go) => setTimeout(go, FOLLOW_MS));
          found = await get(place);
        }
        say(found.error ? `The drain of ${host} has failed: ${found.error}` : `${host} is drained: ${found.result.moved.length} moved, ${found.result.left.length} left.`);
      })();
    },
  });
}

async function follow(place, request, say) {
  let found = request;
  for (;;) {
    say(`The request to ${found.verb} is ${found.state}. ${found.said}`.trim());
    if (FINAL.includes(found.state)) return;
    await new Promise((go) => setTimeout(go, FOLLOW_MS));
    try {
      found = await get(`${place}/${encodeURIComponent(request.id)}`);
    } catch (error) {
      if (error.status === 404) return; // it has been removed: others came after it
    }
  }
}
