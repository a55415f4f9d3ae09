// Calls of the API, with the token that a person has typed in. It is kept until the tab is closed, and nowhere else.

import { heard } from "/dom.js";

const KEY = "hybrid-ha-token";
const AGAIN_MS = 2000;
const WITHIN_MS = 20000;
const SILENT_MS = 40000;

export const token = () => sessionStorage.getItem(KEY) || "";
export const setToken = (said) => (said ? sessionStorage.setItem(KEY, said) : sessionStorage.removeItem(KEY));

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function call(path, options = {}) {
  const headers = { ...options.headers, ...(token() ? { Authorization: `Bearer ${token()}` } : {}) };
  const answer = await fetch(`/api/v1${path}`, { cache: "no-store", ...options, headers });
  heard(answer.headers.get("date"));
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Problem(answer.status, said.detail || `The process answered ${answer.status}.`);
}

export const get = async (path) => (await call(path, { signal: AbortSignal.timeout(WITHIN_MS) })).json();

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  const options = { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(WITHIN_MS) };
  return (await call(path, options)).json();
}

// Listens to a stream of events until it is told to stop. EventSource cannot send a token, so this reads the stream.
export function listen(path, on) {
  const stop = new AbortController();
  (async () => {
    while (!stop.signal.aborted) {
      try {
        await read(path, on, stop.signal);
        on.state(false, "The process has ended the stream.");
      } catch (error) {
        if (stop.signal.aborted) return;
        on.state(false, error.message, error.status);
      }
      await new Promise((go) => setTimeout(go, AGAIN_MS));
    }
  })();
  return () => stop.abort();
}

async function read(path, on, signal) {
  const silent = new AbortController();
  let timer = setTimeout(() => silent.abort(), SILENT_MS);
  try {
    const answer = await call(path, { signal: AbortSignal.any([signal, silent.signal]) });
    on.state(true, "");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), SILENT_MS);
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const each of events) {
        const found = /^event: (\w+)\ndata: (.*)$/.exec(each);
        if (found) on.event(found[1], JSON.parse(found[2]));
      }
    }
  } finally {
    clearTimeout(timer);
  }
}
