// Talking to the server. The token travels in a header, so addresses and logs never hold it.

import { TokenMissing, askForToken, currentToken } from "./token.js";

// Not there now, but it may come back under its name.
const GONE_RETRY_MS = 4000;
const GONE = [404, 414];

export const hasToken = () => currentToken() !== "";

async function request(path, options = {}) {
  for (;;) {
    const token = currentToken();
    const headers = token ? { ...options.headers, Authorization: `Bearer ${token}` } : options.headers;
    const response = await fetch(path, { ...options, headers, credentials: "omit" });
    if (response.status !== 401) return response;
    await askForToken(token, { isDeed: options.method === "POST" });
  }
}

export async function getJson(path, signal) {
  const response = await request(path, { signal });
  if (!response.ok) throw new Error(`${response.status} at ${path}`);
  return response.json();
}

export async function getBlob(path, signal) {
  const response = await request(path, { signal });
  return response.ok ? response.blob() : null;
}

export async function postJson(path, value) {
  const response = await request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(value),
  });
  const told = await response.json().catch(() => ({ error: `answer ${response.status}` }));
  return { ok: response.ok, told };
}

// Seconds since 1970 by the server's clock, as far as the last stream told it.
let aheadS = 0;

export const serverNow = () => Date.now() / 1000 + aheadS;

export const runPath = (run, rest) => `/api/runs/${encodeURIComponent(run)}/${rest}`;

// Server-sent events by fetch, which can send headers as EventSource cannot. It comes back by
// itself after a break and names the event that it saw last. A run that is not there is asked for
// again and again, slowly: it may come, or come back under the same name.
export class Events {
  constructor(run, { onState, onLink, onGone }) {
    this.run = run;
    this.handlers = { onState, onLink, onGone };
    this.lastId = "";
    this.retryMs = 2000;
    this.stopped = new AbortController();
    this.follow();
  }

  stop() {
    this.stopped.abort();
  }

  async follow() {
    const { signal } = this.stopped;
    while (!signal.aborted) {
      this.isGone = false;
      let words = "reconnecting";
      try {
        await this.connect(signal);
      } catch (error) {
        if (error instanceof TokenMissing) words = error.message;
      }
      if (signal.aborted) return;
      if (!this.isGone) this.handlers.onLink("bad", words);
      await new Promise((done) => setTimeout(done, this.isGone ? GONE_RETRY_MS : this.retryMs));
    }
  }

  async connect(signal) {
    const response = await request(runPath(this.run, "events"), {
      signal,
      headers: this.lastId ? { "Last-Event-ID": this.lastId } : {},
      cache: "no-store",
    });
    if (GONE.includes(response.status)) return this.leave();
    if (!response.ok) throw new Error(String(response.status));
    aheadS = Number(response.headers.get("X-Unix-Time-S")) - Date.now() / 1000;
    this.handlers.onLink("good", "connected");
    await this.read(response.body.getReader());
  }

  leave() {
    this.isGone = true;
    this.handlers.onGone();
  }

  async read(reader) {
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = events.pop();
      events.forEach((event) => this.take(event));
    }
  }

  take(event) {
    const fields = {};
    for (const line of event.split("\n")) {
      const colon = line.indexOf(": ");
      if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 2);
    }
    if (fields.retry) this.retryMs = Number(fields.retry) || 2000;
    if (fields.event === "gone") this.leave();
    if (fields.event === "state" && fields.data) {
      this.lastId = fields.id ?? "";
      this.handlers.onState(JSON.parse(fields.data));
    }
  }
}
