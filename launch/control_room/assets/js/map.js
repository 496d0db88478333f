// Level map: the stage, where Mario dies, where time is spent, the best path, and how far it went.

import uPlot from "/vendor/uplot/uPlot.esm.js";
import { getBlob, getJson, runPath } from "./api.js";
import { colour, el, fill } from "./dom.js";
import { count, short } from "./words.js";

const REFRESH_MS = 5000;
const HEIGHT = 240;
const DEATH_BIN = 16;
const LAYERS = { deaths: "deaths", visits: "time spent", path: "best path", frontier: "frontier" };

export class MapView {
  constructor(root, page) {
    this.page = page;
    this.run = page.run;
    this.stage = sessionStorage.getItem("stage") ?? "";
    this.closed = new AbortController();
    this.layers = new Set(["deaths", "visits", "path", "frontier"]);
    this.stages = el("div", { class: "chips" });
    this.choice = el("div", { class: "chips" });
    this.canvas = el("canvas", { id: "level", height: HEIGHT, width: 100 });
    this.scroller = el("div", { class: "scroller" }, this.canvas);
    this.under = el("div", { class: "under" });
    this.chart = el("div", { class: "chart" });
    this.words = el("div", { class: "keys" });
    this.body = el("div", {}, el("section", { class: "card level" }, this.scroller, this.under), el("section", { class: "card panel", style: { marginTop: "12px" } }, el("header", {}, el("h2", {}, "Frontier: farthest x over agent steps"), this.words), this.chart));
    this.nothing = el("p", { class: "empty" }, "Maps appear as soon as actors of this run have played for a while.");
    root.append(el("div", { class: "toolbar" }, this.stages, el("span", { class: "note" }, "show"), this.choice), this.nothing, this.body);
    this.body.hidden = true;
    this.showLayers();
    this.refresh();
    this.timer = setInterval(() => !document.hidden && !this.isAsking && this.refresh(), REFRESH_MS);
    this.resized = new ResizeObserver(() => this.plot?.setSize({ width: this.chart.clientWidth, height: this.chart.clientHeight }));
    this.resized.observe(this.chart);
  }

  close() {
    clearInterval(this.timer);
    this.closed.abort();
    this.resized.disconnect();
    this.plot?.destroy();
  }

  update() {}

  restyle() {
    this.plot?.destroy();
    this.plot = null;
    if (this.told) this.draw();
  }

  showLayers() {
    fill(this.choice, Object.entries(LAYERS).map(([key, name]) => el("button", { class: "chip", type: "button", "aria-pressed": String(this.layers.has(key)), onclick: () => this.toggle(key) }, name)));
  }

  toggle(layer) {
    if (!this.layers.delete(layer)) this.layers.add(layer);
    this.showLayers();
    if (this.told) this.draw();
  }

  // The newest wish wins: an answer to an older one, or of another stage, is not drawn. The timer
  // waits for answers that take long.
  async refresh() {
    const ticket = (this.ticket = {});
    this.isAsking = true;
    try {
      await this.askAndDraw(ticket);
    } finally {
      if (ticket === this.ticket) this.isAsking = false;
    }
  }

  async askAndDraw(ticket) {
    const isOld = () => ticket !== this.ticket || this.closed.signal.aborted;
    const told = await this.ask("levels");
    // What could not be asked for is asked for again: until then the last answer stays.
    if (isOld() || !told) return;
    const { stages } = told;
    this.nothing.hidden = stages.length > 0;
    this.body.hidden = !stages.length;
    if (!stages.length) return;
    if (!stages.includes(this.stage)) this.stage = stages[0];
    fill(this.stages, stages.map((stage) => el("button", { class: "chip", type: "button", "aria-pressed": String(stage === this.stage), onclick: () => this.choose(stage) }, stage)));
    const level = await this.ask(`levels/${this.stage}`);
    if (isOld()) return;
    // Better nothing than the figures of another stage under the name of this one.
    if (!level) this.body.hidden = this.told?.stage !== this.stage;
    if (!level) return;
    const picture = await this.loadPicture(level);
    if (isOld()) return picture?.image?.close();
    this.told = level;
    if (picture) [this.picture, this.pictureVersion] = [picture.image, picture.version];
    this.draw();
  }

  ask(path) {
    return getJson(runPath(this.run, path), this.closed.signal).catch(() => null);
  }

  choose(stage) {
    this.stage = stage;
    sessionStorage.setItem("stage", stage);
    this.refresh();
  }

  // Null when the picture that is shown stays. One that does not come is asked for again.
  async loadPicture({ picture, stage }) {
    const version = picture ? `${stage} ${picture.version}` : "";
    if (version === this.pictureVersion) return null;
    if (!picture) return { version, image: null };
    try {
      const blob = await getBlob(runPath(this.run, `levels/${stage}/picture`), this.closed.signal);
      return { version, image: await createImageBitmap(blob) };
    } catch {
      return { version: undefined, image: null };
    }
  }

  // Only what happened in the area of the picture: pipes lead to places of their own.
  draw() {
    const { told } = this;
    const area = told.picture?.area ?? told.area;
    const deaths = told.deaths.filter((place) => place[0] === area && place[1] !== null);
    const bins = Object.entries(told.visits).map(([place, steps]) => [...place.split(":").map(Number), steps]).filter((bin) => bin[0] === area);
    const path = told.best.path.filter((place) => place[0] === area);
    const frontier = told.frontier[area] ?? [];
    const bestX = told.best.max_x[area] ?? 0;
    const farthest = Math.max(bestX, frontier.at(-1)?.[1] ?? 0, ...deaths.map((place) => place[1]), ...bins.map((bin) => (bin[1] + 1) * told.bin_pixels));
    const width = Math.max(this.picture?.width ?? 0, farthest + 64, 512);
    const ratio = Math.max(1, Math.min(2, devicePixelRatio || 1));
    this.canvas.width = width * ratio;
    this.canvas.height = (HEIGHT + 60) * ratio;
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${HEIGHT + 60}px` });
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    context.imageSmoothingEnabled = false;
    this.drawStage(context, width);
    if (this.layers.has("visits")) this.drawVisits(context, bins, told.bin_pixels);
    if (this.layers.has("path")) this.drawPath(context, path);
    if (this.layers.has("frontier")) this.drawFrontier(context, frontier);
    if (this.layers.has("deaths")) this.drawDeaths(context, deaths);
    this.showUnder(deaths, bins, path.length ? `line: best episode, x ${count(bestX)}` : "no path was kept yet");
    this.showFrontier(frontier);
  }

  drawStage(context, width) {
    context.fillStyle = colour("--panel-2");
    context.fillRect(0, 0, width, HEIGHT + 60);
    if (this.picture) {
      context.globalAlpha = 0.62;
      context.drawImage(this.picture, this.told.picture.x0 ?? 0, 0);
      context.globalAlpha = 1;
    }
    context.strokeStyle = colour("--line");
    context.fillStyle = colour("--faint");
    context.font = "10px system-ui";
    for (let x = 0; x < width; x += 256) {
      context.fillRect(x, HEIGHT, 1, 5);
      context.fillText(String(x), x + 4, HEIGHT + 57);
    }
  }

  drawVisits(context, bins, pixels) {
    const most = Math.max(1, ...bins.map((bin) => bin[2]));
    context.fillStyle = colour("--c2");
    for (const [, bin, steps] of bins) {
      const height = 44 * Math.sqrt(steps / most);
      context.globalAlpha = 0.8;
      context.fillRect(bin * pixels, HEIGHT + 44 - height, Math.max(1, pixels - 1), height);
    }
    context.globalAlpha = 1;
  }

  drawDeaths(context, deaths) {
    const heat = new Map();
    for (const [, x, y] of deaths) {
      const place = `${Math.floor(x / DEATH_BIN)},${y === null ? -1 : Math.max(0, Math.floor(y / DEATH_BIN))}`;
      heat.set(place, (heat.get(place) ?? 0) + 1);
    }
    const most = Math.max(1, ...heat.values());
    for (const [place, deathsHere] of heat) {
      const [column, row] = place.split(",").map(Number);
      const share = Math.sqrt(deathsHere / most);
      const x = (column + 0.5) * DEATH_BIN, y = row < 0 ? HEIGHT - 24 : screenRow((row + 0.5) * DEATH_BIN);
      const radius = 7 + 20 * share;
      const glow = context.createRadialGradient(x, y, 0, x, y, radius);
      glow.addColorStop(0, heatColour(share, 0.35 + 0.6 * share));
      glow.addColorStop(1, heatColour(share, 0));
      context.fillStyle = glow;
      context.fillRect(x - radius, y - radius, 2 * radius, 2 * radius);
    }
  }

  drawPath(context, path) {
    context.strokeStyle = colour("--c1");
    context.lineWidth = 2;
    context.beginPath();
    path.forEach(([, x, y], index) => (index && Math.abs(x - path[index - 1][1]) < 64 ? context.lineTo(x, screenRow(y)) : context.moveTo(x, screenRow(y))));
    context.stroke();
  }

  drawFrontier(context, frontier) {
    const x = frontier.at(-1)?.[1];
    if (!x) return;
    context.strokeStyle = colour("--c3");
    context.setLineDash([5, 4]);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, HEIGHT);
    context.stroke();
    context.setLineDash([]);
  }

  showUnder(deaths, bins, best) {
    const steps = bins.reduce((sum, bin) => sum + bin[2], 0);
    const scale = el("span", { class: "scale", style: { background: `linear-gradient(90deg, ${heatColour(0.05, 0.5)}, ${heatColour(0.5, 0.9)}, ${heatColour(1, 1)})` } });
    fill(
      this.under,
      el("span", {}, "few", scale, "many of ", el("b", {}, count(deaths.length)), " deaths"),
      el("span", {}, `bars: ${short(steps)} agent steps by place`),
      el("span", {}, best),
      el("span", { class: "faint" }, this.picture ? "" : "the picture of this stage comes with its first evaluation"),
    );
  }

  showFrontier(frontier) {
    const data = [frontier.map((one) => one[0]), frontier.map((one) => one[1])];
    fill(this.words, el("span", {}, `now x ${count(frontier.at(-1)?.[1])}`));
    if (this.plot) return this.plot.setData(data);
    const axis = { stroke: colour("--dim"), font: "11px system-ui", grid: { stroke: colour("--line-soft"), width: 1 }, ticks: { show: false } };
    this.plot = new uPlot(
      {
        width: this.chart.clientWidth || 600,
        height: this.chart.clientHeight || 190,
        padding: [10, 18, 0, 0],
        scales: { x: { time: false } },
        axes: [{ ...axis, size: 28, values: (_, ticks) => ticks.map((tick) => short(tick)) }, { ...axis, size: 52 }],
        series: [{}, { stroke: colour("--c3"), width: 1.8, paths: uPlot.paths.stepped({ align: 1 }), fill: `${colour("--c3")}1c` }],
      },
      data,
      this.chart,
    );
  }
}

// The game counts heights from below; a picture counts rows from above. Mario is 16 pixels tall.
function screenRow(height) {
  return Math.max(8, Math.min(HEIGHT - 8, 255 - (height ?? 79) + 8));
}

// From amber to red, as embers.
function heatColour(share, alpha) {
  const [red, green, blue] = share < 0.5 ? [250, 196 - 120 * share, 70] : [250 - 20 * (share - 0.5), 136 - 170 * (share - 0.5), 60];
  return `rgba(${Math.round(red)}, ${Math.round(green)}, ${Math.round(blue)}, ${alpha})`;
}
