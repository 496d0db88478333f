// Curves: many panels over one axis, zoomed and smoothed together, several runs beside each other.

import uPlot from "/vendor/uplot/uPlot.esm.js";
import { getJson, runPath } from "./api.js";
import { colour, el, fill, seriesColour } from "./dom.js";
import { findRun } from "./find.js";
import { touchZoom } from "./touch_zoom.js";
import { figure, percent, short } from "./words.js";

const REFRESH_MS = 3000;
const MAX_RUNS = 8;
const MAX_CHIPS = 40;
const AXES = { steps: "agent steps", minutes: "minutes of training", time: "wall clock" };
const SMOOTHINGS = [0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99];

export class CurvesView {
  constructor(root, page) {
    this.page = page;
    this.axis = sessionStorage.getItem("axis") ?? "steps";
    this.smoothing = Number(sessionStorage.getItem("smoothing") ?? 0);
    this.range = null;
    this.others = JSON.parse(sessionStorage.getItem("others") ?? "[]").filter((name) => name !== page.run);
    this.data = new Map();
    this.seen = -1;
    this.root = root;
    this.closed = new AbortController();
    this.toolbar();
    this.grid = el("section", { class: "grid panels" });
    root.append(this.grid);
    this.charts = page.panels.map((panel) => new Chart(panel, this));
    fill(this.grid, this.charts.map((chart) => chart.root));
    this.resized = new ResizeObserver(() => this.charts.forEach((chart) => chart.fit()));
    this.resized.observe(this.grid);
    this.refresh();
    this.timer = setInterval(() => this.seen !== this.state?.rows && !document.hidden && this.refresh(), REFRESH_MS);
  }

  close() {
    clearInterval(this.timer);
    this.resized.disconnect();
    this.closed.abort();
    this.charts.forEach((chart) => chart.close());
  }

  update(state) {
    const isFirst = !this.state;
    this.state = state;
    if (isFirst && this.seen !== state.rows) this.refresh();
  }

  restyle() {
    this.charts.forEach((chart) => chart.close());
    this.draw();
  }

  get runs() {
    return [this.page.run, ...this.others];
  }

  toolbar() {
    const axis = el("select", { id: "axis", onchange: (event) => this.set({ axis: event.target.value, range: null }) }, Object.entries(AXES).map(([key, name]) => el("option", { value: key }, name)));
    axis.value = this.axis;
    const smooth = el("input", { type: "range", id: "smooth", min: 0, max: SMOOTHINGS.length - 1, step: 1, value: Math.max(0, SMOOTHINGS.indexOf(this.smoothing)), oninput: (event) => this.set({ smoothing: SMOOTHINGS[event.target.value] }) });
    this.smoothWords = el("span", {}, this.smoothing || "off");
    this.reset = el("button", { class: "plain", type: "button", disabled: true, onclick: () => this.set({ range: null }) }, "Whole run");
    this.chips = el("div", { class: "chips", id: "compare" });
    this.root.append(el("div", { class: "toolbar" }, el("label", {}, "over", axis), el("label", {}, "smooth", smooth, this.smoothWords), this.reset, el("span", { class: "note" }, "drag over a chart to zoom")), this.chips);
    this.chips.style.marginBottom = "12px";
    this.showChips();
  }

  showChips() {
    const { runs, run, total } = this.page;
    const listed = runs.filter((name) => name !== run);
    const shown = listed.slice(0, MAX_CHIPS);
    const names = [...shown, ...this.others.filter((name) => !shown.includes(name))];
    if (!names.length) return fill(this.chips);
    const more = total > runs.length || listed.length > shown.length;
    fill(
      this.chips,
      el("span", { class: "note" }, "compare with"),
      more ? el("button", { class: "chip", type: "button", onclick: () => this.addAnother() }, "another run …") : "",
      names.map((name) => {
        const place = this.others.indexOf(name);
        return el("button", { class: "chip", type: "button", "aria-pressed": String(place >= 0), onclick: () => this.toggle(name) }, place >= 0 ? el("i", { style: { background: seriesColour(place + 1) } }) : "", name);
      }),
    );
  }

  async addAnother() {
    const name = await findRun();
    if (name && name !== this.page.run && !this.others.includes(name) && !this.closed.signal.aborted) this.toggle(name);
  }

  toggle(name) {
    this.compareWith(this.others.includes(name) ? this.others.filter((one) => one !== name) : [...this.others, name].slice(0, MAX_RUNS - 1));
    this.refresh();
  }

  compareWith(names) {
    this.others = names;
    sessionStorage.setItem("others", JSON.stringify(names));
    this.showChips();
  }

  set(change) {
    Object.assign(this, change);
    sessionStorage.setItem("axis", this.axis);
    sessionStorage.setItem("smoothing", this.smoothing);
    this.smoothWords.textContent = this.smoothing || "off";
    this.reset.disabled = this.range === null;
    this.refresh();
  }

  // The newest wish wins: an answer to an older one is not drawn.
  async refresh() {
    const ticket = (this.ticket = {});
    this.seen = this.state?.rows ?? -1;
    const buckets = bucketsOf(this.grid?.querySelector(".chart")?.clientWidth || 400);
    const words = new URLSearchParams({ panels: this.page.panels.map((one) => one.key).join(), axis: this.axis, smooth: this.smoothing, buckets });
    if (this.range) {
      words.set("from", this.range[0]);
      words.set("to", this.range[1]);
    }
    const answers = await Promise.all(this.runs.map((run) => getJson(runPath(run, `curves?${words}`), this.closed.signal).catch(() => null)));
    if (ticket !== this.ticket || this.closed.signal.aborted) return;
    this.dropMissing(answers);
    this.draw();
  }

  // A tab remembers what was compared, and the run may be gone or of another folder.
  dropMissing([own, ...others]) {
    const stays = this.others.map((name, index) => own === null || others[index] !== null || this.page.runs.includes(name));
    this.answers = [own, ...others.filter((_, index) => stays[index])];
    if (stays.includes(false)) this.compareWith(this.others.filter((_, index) => stays[index]));
  }

  draw() {
    if (!this.answers) return;
    for (const chart of this.charts) chart.show(this.answers.map((answer) => answer?.[chart.panel.key] ?? null));
  }
}

// In steps: viewers with windows of about one size share the answers of the server.
function bucketsOf(width) {
  return Math.min(600, Math.max(200, 100 * Math.round(width / 100)));
}

class Chart {
  constructor(panel, view) {
    this.panel = panel;
    this.view = view;
    this.keys = el("div", { class: "keys" });
    this.box = el("div", { class: "chart" });
    this.nothing = el("div", { class: "nothing" }, "nothing was measured yet");
    this.box.append(this.nothing);
    const unit = panel.unit && !panel.percent ? el("small", {}, panel.unit) : "";
    this.root = el("article", { class: "card panel", "data-panel": panel.key, title: panel.meanings.join("\n") }, el("header", {}, el("h2", {}, panel.title, unit), this.keys), this.box);
  }

  close() {
    this.plot?.destroy();
    this.plot = null;
    this.shape = null;
  }

  fit() {
    if (this.plot && this.box.clientWidth) this.plot.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
  }

  // One table per run and stage; uPlot joins them over one axis.
  tables(parts) {
    const { panel, view } = this;
    const tables = [], curves = [];
    parts.forEach((part, runIndex) => {
      if (!part) return;
      const several = view.runs.length > 1;
      const blocks = part.stages ? Object.entries(part.stages) : [["", part]];
      blocks.forEach(([stage, block], stageIndex) => {
        if (!block.x.length) return;
        const names = [...panel.names, ...(panel.band ?? [])];
        tables.push([block.x, ...names.map((name) => block.y[name])]);
        names.forEach((name, index) => {
          const isBand = index >= panel.names.length;
          const label = [several ? view.runs[runIndex] : "", blocks.length > 1 ? stage : "", several && panel.names.length === 1 ? "" : panel.labels[index]].filter(Boolean).join(" ");
          const place = several ? runIndex : blocks.length > 1 ? stageIndex : isBand ? 0 : index;
          curves.push({ label, isBand, bandPlace: index - panel.names.length, place, dim: several ? index : 0 });
        });
      });
    });
    return { tables, curves };
  }

  show(parts) {
    const { tables, curves } = this.tables(parts);
    const points = Math.max(0, ...tables.map((table) => table[0].length));
    this.nothing.hidden = points > 0;
    if (!tables.length) return this.close();
    const data = tables.length === 1 ? tables[0] : uPlot.join(tables, tables.map((table) => table.slice(1).map(() => 2)));
    const shape = JSON.stringify([curves, points < 40, this.view.axis]);
    this.root.dataset.points = points;
    this.root.dataset.last = data[0].at(-1);
    if (shape !== this.shape) {
      this.close();
      this.shape = shape;
      this.curves = curves;
      this.plot = new uPlot(this.options(curves, points < 40), data, this.box);
    } else this.plot.setData(data);
    this.showKeys(null);
  }

  options(curves, fewPoints) {
    const { panel, view } = this;
    const value = panel.percent ? (one) => percent(one) : figure;
    const axis = { stroke: colour("--dim"), font: "11px system-ui", grid: { stroke: colour("--line-soft"), width: 1 }, ticks: { stroke: colour("--line"), width: 1, size: 4 } };
    const xValues = view.axis === "time" ? undefined : (_, ticks) => ticks.map((tick) => short(tick));
    const series = curves.map((curve) => {
      const stroke = seriesColour(curve.place);
      if (curve.isBand) return { stroke: "transparent", points: { show: false }, spanGaps: true };
      return { label: curve.label, stroke, width: 1.6, alpha: 1 - 0.22 * curve.dim, dash: curve.dim > 1 ? [4, 3] : undefined, spanGaps: true, points: { show: fewPoints, size: 5, fill: stroke } };
    });
    const bands = [];
    curves.forEach((curve, index) => {
      if (curve.isBand && curve.bandPlace === 0) bands.push({ series: [index + 2, index + 1], fill: `${seriesColour(curve.place)}2e` });
    });
    return {
      width: this.box.clientWidth || 400,
      height: this.box.clientHeight || 190,
      padding: [10, 18, 0, 0],
      cursor: { sync: { key: "curves" }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      scales: { x: { time: view.axis === "time" }, y: { distr: panel.log_scale ? 3 : 1, range: panel.percent ? (_, low, high) => [0, Math.max(0.05, Math.min(1, high * 1.1))] : undefined } },
      axes: [{ ...axis, size: 28, values: xValues, space: 70 }, { ...axis, size: 52, space: 30, values: (_, ticks) => ticks.map((tick) => (tick === null ? "" : value(tick))) }],
      series: [{}, ...series],
      bands,
      plugins: [touchZoom()],
      hooks: {
        setSelect: [(plot) => this.zoom(plot)],
        setCursor: [(plot) => this.showKeys(plot.cursor.idx)],
      },
    };
  }

  zoom(plot) {
    const { left, width } = plot.select;
    if (width < 4) return;
    const range = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
    plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.view.set({ range });
  }

  showKeys(index) {
    const { curves, plot, panel } = this;
    if (!plot) return;
    const value = panel.percent ? (one) => percent(one, 1) : figure;
    fill(
      this.keys,
      curves.slice(0, 12).map((curve, place) => {
        if (curve.isBand) return "";
        const column = plot.data[place + 1];
        const shown = index === null || index === undefined ? column.findLast((one) => one !== null && one !== undefined) : column[index];
        return el("span", {}, el("i", { style: { background: seriesColour(curve.place), opacity: String(1 - 0.22 * curve.dim) } }), curve.label, el("b", {}, value(shown)));
      }),
    );
  }
}
