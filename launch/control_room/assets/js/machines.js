// Machines: every process and GPU, its state and why it was started again.

import { getJson, runPath, serverNow } from "./api.js";
import { el, fill, fillOnce, say, spark } from "./dom.js";
import { count, duration, figure } from "./words.js";

const HEADS = ["", "Process", "State", "Progress", "CPU", "Memory", "Restarts", "Last end", "Heard"];
const TICK_MS = 1000;

export class MachinesView {
  constructor(root, page) {
    this.page = page;
    this.gpus = el("section", { class: "grid gpus" });
    this.list = el("section", { class: "process-list" });
    this.rows = new Map();
    root.append(this.gpus, el("div", { class: "column-heads" }, HEADS.map((head) => el("span", {}, head))), this.list);
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  close() {
    clearInterval(this.timer);
  }

  update(state) {
    this.state = state;
    this.showGpus(state.gpus);
    const names = state.processes.map((one) => one.name);
    if (!names.length) fill(this.list, el("p", { class: "empty" }, "No process of this run has left a heartbeat."));
    if (names.join() !== [...this.rows.keys()].join()) {
      this.rows = new Map(names.map((name) => [name, new ProcessRow(name, this.page.run)]));
      if (names.length) fill(this.list, [...this.rows.values()].map((row) => row.root));
    }
    for (const process of state.processes) this.rows.get(process.name).update(process, state);
    this.tick();
  }

  // A heartbeat that stops is seen here even when the server is out of reach.
  tick() {
    if (!this.state) return;
    for (const process of this.state.processes) this.rows.get(process.name)?.tick(process, this.state);
  }

  showGpus(gpus) {
    fillOnce(this.gpus, gpus, () =>
      gpus.map((gpu) =>
        el(
          "article",
          { class: "card kpi" },
          el("h2", {}, `GPU ${gpu.index} ${gpu.name ?? ""}`),
          el("div", { class: "value" }, gpu.util_percent === null ? "–" : `${figure(gpu.util_percent)} %`, el("small", {}, ` ${figure(gpu.temperature_c)} °C`)),
          el("div", { class: "sub" }, `${count(gpu.mem_used_mb)} of ${count(gpu.mem_total_mb)} MB, ${figure(gpu.power_w)} W`),
          gpu.error ? el("div", { class: "sub" }, gpu.error) : "",
        ),
      ),
    );
  }
}

class ProcessRow {
  constructor(name, run) {
    this.name = name;
    this.run = run;
    this.dot = el("i", { class: "dot" });
    this.words = el("span", { class: "words" });
    this.rate = el("span", { class: "rate" });
    this.meter = el("span", { class: "meter" });
    this.memory = el("span", { class: "mem" });
    this.restarts = el("span", { class: "restarts" });
    this.why = el("span", { class: "why" });
    this.age = el("span", { class: "age note" });
    this.inside = el("div", { class: "inside" });
    this.facts = el("div", { class: "facts" });
    this.log = el("pre", { class: "log", tabindex: "0" }, "reading the log …");
    this.inside.append(this.facts, this.log);
    const summary = el("summary", {}, this.dot, el("span", { class: "name" }, name), this.words, this.rate, this.meter, this.memory, this.restarts, this.why, this.age);
    this.root = el("details", { class: "card process", "data-process": name, ontoggle: () => this.readLog() }, summary, this.inside);
  }

  update(process, state) {
    const { beat, ends, restarts } = process;
    fillOnce(this.rate, [beat.progress_per_s, process.rates], () => [el("span", {}, `${figure(beat.progress_per_s)}/s`), spark(process.rates, 20)]);
    const cpu = Math.min(100, beat.cpu_percent ?? 0);
    fillOnce(this.meter, beat.cpu_percent, () => [el("span", { class: "track" }, el("span", { style: { width: `${cpu}%` } })), el("span", { class: "right" }, `${count(beat.cpu_percent)} %`)]);
    say(this.memory, `${count(beat.rss_mb)} MB`);
    say(this.restarts, restarts ? `${restarts} ×` : "none");
    const last = ends.at(-1);
    say(this.why, last ? last.reason : "");
    this.why.title = ends.map((end) => `${end.when} ${end.reason}`).join("\n");
    const facts = { pid: beat.pid, "up for": duration(beat.uptime_s), progress: count(beat.progress), waits: beat.share_wait === undefined ? "–" : `${Math.round(100 * beat.share_wait)} %`, threads: count(beat.threads), "open files": count(beat.open_files), "weight version": count(beat.weight_version) };
    fillOnce(this.facts, facts, () => Object.entries(facts).map(([name, value]) => el("span", {}, name, el("b", {}, value ?? "–"))));
    if (this.root.open && state.rows !== this.logRows) {
      this.logRows = state.rows;
      this.readLog();
    }
  }

  tick(process, state) {
    const silent = serverNow() - process.beat.time;
    const isLate = process.level !== "ended" && process.level !== "bad" && silent > state.silent_after_s + 1;
    const level = isLate ? "bad" : process.level;
    this.root.dataset.level = level;
    this.dot.dataset.level = level;
    const words = isLate ? `silent for ${Math.round(silent)} s` : process.words;
    say(this.words, words);
    this.words.title = words;
    say(this.age, duration(Math.max(0, silent)));
  }

  async readLog() {
    if (!this.root.open) return;
    const told = await getJson(runPath(this.run, `log/${encodeURIComponent(this.name)}`)).catch(() => null);
    this.log.textContent = told?.lines.join("\n") || "this process has written nothing";
    this.log.scrollTop = this.log.scrollHeight;
  }
}
