// Talking to the server. The token travels in a header, so addresses and logs never hold it.

let token = takeToken();

function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem("token", given);
    // Out of sight, and out of the history.
    history.replaceState(null, "", `${location.pathname}#now`);
  }
  return given ?? sessionStorage.getItem("token") ?? "";
}

export const hasToken = () => token !== "";

export async function askForToken() {
  const dialog = document.getElementById("ask");
  if (!dialog.open) dialog.showModal();
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  token = document.getElementById("token").value.trim();
  sessionStorage.setItem("token", token);
}

function headers(more = {}) {
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

async function request(path, options = {}) {
  for (;;) {
    const response = await fetch(path, { ...options, headers: headers(options.headers), credentials: "omit" });
    if (response.status !== 401) return response;
    await askForToken();
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
// itself after a break and names the event that it saw last.
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
    while (!this.stopped.signal.aborted) {
      try {
        const response = await request(runPath(this.run, "events"), {
          signal: this.stopped.signal,
          headers: this.lastId ? { "Last-Event-ID": this.lastId } : {},
          cache: "no-store",
        });
        if (response.status === 404) return this.handlers.onGone();
        if (!response.ok) throw new Error(String(response.status));
        aheadS = Number(response.headers.get("X-Unix-Time-S")) - Date.now() / 1000;
        this.handlers.onLink("good", "connected");
        await this.read(response.body.getReader());
      } catch (error) {
        if (this.stopped.signal.aborted) return;
      }
      this.handlers.onLink("bad", "reconnecting");
      await new Promise((done) => setTimeout(done, this.retryMs));
    }
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
    if (fields.event === "gone") this.handlers.onGone();
    if (fields.event === "state" && fields.data) {
      this.lastId = fields.id ?? "";
      this.handlers.onState(JSON.parse(fields.data));
    }
  }
}
