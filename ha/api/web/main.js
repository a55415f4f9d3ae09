// The page: which view is shown, and the stream of events that keeps it up to date.

import { listen } from "/api.js";
import { askToken } from "/ask.js";
import { JobPage } from "/job.js";
import { JobList } from "/jobs.js";

const main = document.getElementById("main");
const live = document.getElementById("live");
const trouble = document.getElementById("trouble");
let stop = () => {};
let asked = false;

function complain(text) {
  trouble.hidden = !text;
  trouble.textContent = text || "";
}

const on = (event) => ({
  event: (name, data) => {
    if (name === "trouble" || name === "mended") complain(data);
    else event(name, data);
  },
  state: (up, text, status) => {
    live.textContent = up ? "Live" : "Connecting";
    live.classList.toggle("on", up);
    complain(text);
    if (status === 401 && !asked) {
      asked = true;
      askToken(show);
    }
  },
});

function showAll() {
  const list = new JobList(main);
  return listen("/events", on((name, data) => list.event(name, data)));
}

function showOne(job) {
  const page = new JobPage(main, job);
  return listen(`/jobs/${encodeURIComponent(job)}/events`, on((name, data) => {
    if (name === "job") page.show(data);
    if (name === "changed") page.changed(data.parts);
  }));
}

function show() {
  stop();
  complain("");
  const found = /^#\/jobs\/([^/]+)$/.exec(location.hash);
  main.replaceChildren();
  stop = found ? showOne(decodeURIComponent(found[1])) : showAll();
}

window.addEventListener("hashchange", () => { show(); main.focus({ preventScroll: true }); window.scrollTo(0, 0); });
document.getElementById("token").addEventListener("click", () => askToken(show));
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
show();
