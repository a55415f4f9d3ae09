// Dialogs: the token, and the confirmation of a request, which is then followed until it has ended.

import { get, post, setToken, token } from "/api.js";
import { el } from "/dom.js";

const FOLLOW_MS = 700;
const FINAL = ["done", "refused", "failed", "unknown"];

export const VERBS = [
  ["restart", "Restart", "Its command is started again, on the same host and in the same epoch."],
  ["pause", "Pause", "Its leader stays, and nobody takes over, whatever happens to it, until somebody resumes the job."],
  ["resume", "Resume", "The pause ends: standbys take over again when they must."],
  ["stop", "Stop", "Its command is asked to end, and the job has FINISHED. No leader runs it again."],
  ["cancel", "Cancel", "Its command is stopped, and the job is CANCELED. No leader runs it again."],
];

export const BAD = ["stop", "cancel"];
export const possible = (verb, row) => (verb === "resume" ? row.paused !== null : verb === "pause" ? row.paused === null : row.holder !== null);

function open(title, text, { confirm, danger, field, act }) {
  const dialog = document.getElementById("dialog");
  const failure = el("p", { role: "alert" });
  const input = field ? el("input", { type: "password", name: "token", autocomplete: "off", value: token() }) : null;
  const button = el("button", { type: "submit", class: danger ? "bad" : null }, confirm);
  const form = el("form", { method: "dialog", onsubmit: async (event) => {
    event.preventDefault();
    if (input) setToken(input.value.trim());
    button.disabled = true;
    try {
      await act();
      dialog.close();
    } catch (error) {
      failure.textContent = error.message;
      button.disabled = false;
    }
  } },
  el("h2", { id: "dialog-title" }, title), el("p", {}, text),
  input ? el("label", {}, "Token ", el("span", { class: "soft" }, "(kept until this tab is closed)"), input) : null,
  failure,
  el("div", { class: "buttons" }, button, el("button", { type: "button", onclick: () => dialog.close() }, "Leave it")));
  dialog.replaceChildren(form);
  dialog.showModal();
}

export function askToken(then) {
  open("Token", "A token of the role read shows this page where reading needs one; one of the role operate allows requests.", {
    confirm: "Use it", field: true, act: async () => then(),
  });
}

// The id is made once for each dialog: if the answer is lost, asking again is asking once.
export function confirm(job, [verb, title, text], say) {
  const id = `page-${Date.now()}-${crypto.getRandomValues(new Uint32Array(1))[0].toString(16)}`;
  open(`${title} ${job}?`, text, {
    confirm: `${title} the job`, danger: BAD.includes(verb), field: true,
    act: async () => {
      const made = await post(`/jobs/${encodeURIComponent(job)}/requests`, { verb, id });
      follow(job, made, say);
    },
  });
}

async function follow(job, request, say) {
  let found = request;
  for (;;) {
    say(`The request to ${found.verb} is ${found.state}. ${found.said}`);
    if (FINAL.includes(found.state)) return;
    await new Promise((go) => setTimeout(go, FOLLOW_MS));
    try {
      found = await get(`/jobs/${encodeURIComponent(job)}/requests/${encodeURIComponent(request.id)}`);
    } catch (error) {
      if (error.status === 404) return; // it has been removed: others came after it
    }
  }
}
