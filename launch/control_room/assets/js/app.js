// The frame of the page: which run, which view, dark or light, connected or not.

import { Events, getJson } from "./api.js";
import { el, fill } from "./dom.js";
import { findRun } from "./find.js";
import { TokenMissing } from "./token.js";
import { ControlsView } from "./controls.js";
import { CurvesView } from "./curves.js";
import { LiveView } from "./live.js";
import { MachinesView } from "./machines.js";
import { MapView } from "./map.js";
import { NowView } from "./now.js";
import { duration } from "./words.js";

const VIEWS = { now: NowView, live: LiveView, curves: CurvesView, machines: MachinesView, map: MapView, controls: ControlsView };
const RUNS_INTERVAL_MS = 10000;
// No run can have this name.
const ANOTHER = "/";

const page = {
  runs: [],
  total: 0,
  panels: [],
  allowControl: false,
  run: "",
  isMissing: false,
  state: null,
  view: null,
  events: null,
};

function place() {
  const [view, run] = location.hash.slice(1).split("/");
  return { view: Object.hasOwn(VIEWS, view) ? view : "now", run: decoded(run ?? "") };
}

// An address may be typed by hand: what is not well formed is taken as it stands.
function decoded(word) {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

const address = (view, run) => `#${view}${run ? `/${encodeURIComponent(run)}` : ""}`;

async function loadRuns() {
  const told = await getJson("/api/runs");
  Object.assign(page, { runs: told.runs.map((one) => one.name), total: told.total, panels: told.panels, allowControl: told.allow_control });
  showChoice();
}

// The run that is shown is among them, listed or not.
function showChoice() {
  const select = document.getElementById("run");
  const names = page.run && !page.runs.includes(page.run) ? [page.run, ...page.runs] : page.runs;
  const more = page.total > page.runs.length ? el("option", { value: ANOTHER }, `another of ${page.total} …`) : "";
  const key = `${page.total}\n${names.join("\n")}`;
  if (select.dataset.names !== key) {
    select.dataset.names = key;
    fill(select, names.map((name) => el("option", { value: name }, name)), more);
  }
  select.value = page.run;
}

async function choose(name) {
  const run = name === ANOTHER ? await findRun() : name;
  if (run) location.hash = address(place().view, run);
  else showChoice();
}

function openRun(name) {
  page.events?.stop();
  Object.assign(page, { run: name, state: null, isMissing: false });
  showChoice();
  document.title = name ? `${name} · Warp Zone` : "Warp Zone control room";
  if (!name) return showNothing();
  page.events = new Events(name, {
    onState: takeState,
    onLink: showLink,
    onGone: () => (page.state ? showDeleted() : showMissing()),
  });
}

function takeState(state) {
  const cameBack = page.isMissing || page.state?.there === false;
  Object.assign(page, { state, isMissing: false });
  showStatus();
  // Views keep what they have seen, and this is another run.
  if (cameBack && state.there) openView(place().view);
  else page.view?.update(state);
}

function showDeleted() {
  page.state = { ...page.state, there: false };
  showLink("bad", "deleted");
  setStatus("bad", "this run was deleted");
}

function showMissing() {
  page.isMissing = true;
  setStatus("bad", "no such run");
  showLink("waiting", "waiting");
  showNotice(`There is no run ${page.run} in this folder. It opens here if it comes.`);
}

function showNotice(words, ...more) {
  page.view?.close();
  page.view = null;
  fill(document.getElementById("view"), el("p", { class: "empty" }, words), more);
}

function showNothing() {
  setStatus("ended", "no run yet");
  showLink("waiting", "waiting");
  showNotice("There is no run in this folder yet. Start one with python launch/local.py and it appears here.");
}

function showLocked() {
  setStatus("bad", "locked");
  showLink("bad", "needs the token");
  const again = el("button", { class: "primary", type: "button", onclick: () => location.reload() }, "Give the token");
  showNotice("This control room shows nothing without its token.", el("p", { class: "empty-act" }, again));
}

function openView(name) {
  page.view?.close();
  for (const tab of document.querySelectorAll(".tabs a")) {
    tab.toggleAttribute("aria-current", tab.dataset.view === name);
    tab.href = address(tab.dataset.view, page.run);
  }
  if (page.isMissing) return showMissing();
  const root = document.getElementById("view");
  root.replaceChildren();
  page.view = new VIEWS[name](root, page);
  if (page.state) page.view.update(page.state);
}

function showLink(level, words) {
  const link = document.getElementById("link");
  link.dataset.level = level;
  link.lastElementChild.textContent = words;
}

function setStatus(level, words) {
  const status = document.getElementById("status");
  status.dataset.level = level;
  status.textContent = words;
}

function showStatus() {
  const { state } = page;
  const bad = state.processes.filter((one) => one.level === "bad").length;
  const time = state.metrics.run_time_s;
  if (!state.there) setStatus("bad", "this run was deleted");
  else if (state.over) setStatus("ended", "ended");
  else if (bad) setStatus("bad", `running, ${bad} down`);
  else if (!state.processes.length) setStatus("waiting", "starting");
  else setStatus("good", time ? `running for ${duration(time)}` : "running");
}

function go() {
  const wanted = place();
  const run = wanted.run || (!page.isMissing && page.run) || page.runs[0] || "";
  const isNew = run !== page.run;
  if (isNew) openRun(run);
  if (run) openView(wanted.view);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  page.view?.restyle?.();
}

function startTheme() {
  const system = matchMedia("(prefers-color-scheme: light)");
  const current = () => localStorage.getItem("theme") ?? (system.matches ? "light" : "dark");
  setTheme(current());
  system.addEventListener("change", () => setTheme(current()));
  document.getElementById("theme").addEventListener("click", () => {
    localStorage.setItem("theme", document.documentElement.dataset.theme === "light" ? "dark" : "light");
    setTheme(current());
  });
}

async function keepRuns() {
  for (;;) {
    await new Promise((done) => setTimeout(done, RUNS_INTERVAL_MS));
    if (document.hidden) continue;
    await loadRuns().catch(() => {});
    if (!page.run && page.runs.length) go();
  }
}

async function start() {
  const error = await loadRuns().then(() => null, (failed) => failed);
  if (error instanceof TokenMissing) return showLocked();
  if (error) showLink("bad", "no answer");
  addEventListener("hashchange", go);
  go();
  if (!page.run) showNothing();
  keepRuns();
}

startTheme();
document.getElementById("run").addEventListener("change", (event) => {
  choose(event.target.value);
});
for (const button of document.querySelectorAll("[data-close]")) button.addEventListener("click", () => button.closest("dialog").close());
await start();
