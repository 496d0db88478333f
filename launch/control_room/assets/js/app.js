// The frame of the page: which run, which view, dark or light, connected or not.

import { Events, getJson } from "./api.js";
import { el, fill } from "./dom.js";
import { ControlsView } from "./controls.js";
import { CurvesView } from "./curves.js";
import { LiveView } from "./live.js";
import { MachinesView } from "./machines.js";
import { MapView } from "./map.js";
import { NowView } from "./now.js";
import { duration } from "./words.js";

const VIEWS = { now: NowView, live: LiveView, curves: CurvesView, machines: MachinesView, map: MapView, controls: ControlsView };
const RUNS_INTERVAL_MS = 10000;

const page = {
  runs: [],
  panels: [],
  allowControl: false,
  run: "",
  state: null,
  view: null,
  events: null,
};

function place() {
  const [view, run] = location.hash.slice(1).split("/");
  return { view: view in VIEWS ? view : "now", run: decodeURIComponent(run ?? "") };
}

async function loadRuns() {
  const told = await getJson("/api/runs");
  Object.assign(page, { runs: told.runs.map((one) => one.name), panels: told.panels, allowControl: told.allow_control });
  const select = document.getElementById("run");
  if (select.dataset.names !== page.runs.join("\n")) {
    select.dataset.names = page.runs.join("\n");
    fill(select, page.runs.map((name) => el("option", { value: name }, name)));
  }
  select.value = page.run;
}

function openRun(name) {
  page.events?.stop();
  Object.assign(page, { run: name, state: null });
  document.getElementById("run").value = name;
  document.title = name ? `${name} · Warp Zone` : "Warp Zone control room";
  if (!name) return showNothing();
  page.events = new Events(name, {
    onState: (state) => {
      page.state = state;
      showStatus();
      page.view?.update(state);
    },
    onLink: showLink,
    onGone: () => {
      showLink("bad", "deleted");
      setStatus("bad", "this run was deleted");
    },
  });
}

function showNothing() {
  setStatus("ended", "no run yet");
  showLink("waiting", "waiting");
  fill(
    document.getElementById("view"),
    el("p", { class: "empty" }, "There is no run in this folder yet. Start one with python launch/local.py and it appears here."),
  );
}

function openView(name) {
  page.view?.close();
  for (const tab of document.querySelectorAll(".tabs a")) {
    tab.toggleAttribute("aria-current", tab.dataset.view === name);
    tab.href = `#${tab.dataset.view}${page.run ? `/${encodeURIComponent(page.run)}` : ""}`;
  }
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
  else if (bad) setStatus("bad", `running, ${bad} ${bad === 1 ? "process" : "processes"} down`);
  else if (!state.processes.length) setStatus("waiting", "starting");
  else setStatus("good", time ? `running for ${duration(time)}` : "running");
}

function go() {
  const wanted = place();
  const run = page.runs.includes(wanted.run) ? wanted.run : page.run || page.runs[0] || "";
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

startTheme();
document.getElementById("run").addEventListener("change", (event) => {
  location.hash = `${place().view}/${encodeURIComponent(event.target.value)}`;
});
addEventListener("hashchange", go);
await loadRuns().catch(() => showLink("bad", "no answer"));
go();
if (!page.run) showNothing();
keepRuns();
