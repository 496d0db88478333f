// Finding a run by a part of its name: a folder may hold more of them than a list can show.

import { getJson } from "./api.js";
import { el, fill } from "./dom.js";

const TYPING_MS = 150;

// The name that was chosen, or "" when nobody chose one.
export async function findRun() {
  const dialog = document.getElementById("find");
  const input = document.getElementById("part");
  const closed = new AbortController();
  const search = searcher((name) => dialog.close(name));
  input.value = "";
  dialog.returnValue = "";
  input.addEventListener("input", () => search.soon(input.value), { signal: closed.signal });
  // Enter takes what was found first, which is the very run where the whole name was typed.
  dialog.querySelector("form").addEventListener("submit", (event) => take(event, search, input.value), { signal: closed.signal });
  dialog.showModal();
  search.now("");
  await new Promise((done) => dialog.addEventListener("close", done, { once: true }));
  closed.abort();
  return dialog.returnValue;
}

async function take(event, search, part) {
  event.preventDefault();
  await search.now(part);
  document.querySelector("#found button")?.click();
}

function searcher(choose) {
  let timer = 0, newest = "";
  const now = async (typed) => {
    clearTimeout(timer);
    const part = (newest = typed.trim());
    const told = await getJson(`/api/runs?like=${encodeURIComponent(part)}`).catch(() => null);
    if (told && part === newest) show(told, part, choose);
  };
  const soon = (part) => {
    clearTimeout(timer);
    timer = setTimeout(now, TYPING_MS, part);
  };
  return { now, soon };
}

function show(told, part, choose) {
  const names = told.runs.map((one) => one.name);
  if (names.includes(part)) names.unshift(...names.splice(names.indexOf(part), 1));
  const rest = told.total - names.length;
  fill(
    document.getElementById("found"),
    names.map((name) => el("li", {}, el("button", { class: "plain", type: "button", onclick: () => choose(name) }, name))),
    names.length ? "" : el("li", { class: "note" }, "No run of this folder has that in its name."),
    rest > 0 ? el("li", { class: "note" }, `and ${rest} more; type more of the name`) : "",
  );
}
