// The game, live: what one to nine actors see, while this view is open and visible.

import { getBlob, getJson, runPath } from "./api.js";
import { el, fill, fillOnce, say } from "./dom.js";
import { count, figure, short } from "./words.js";

const MAX_TILES = 9;
const PERIOD_MS = 200;
const WAITING = "waiting for the actor to show itself";
const ENDED = "this run has ended";

export class LiveView {
  constructor(root, page) {
    this.page = page;
    this.run = page.run;
    this.chips = el("div", { class: "chips" });
    this.note = el("span", { class: "note" });
    this.tiles = el("section", { class: "grid tiles" });
    this.chosen = JSON.parse(sessionStorage.getItem("actors") ?? "null") ?? null;
    this.byName = new Map();
    this.closed = new AbortController();
    root.append(el("div", { class: "toolbar" }, this.chips, this.note), this.tiles);
    this.watch();
  }

  close() {
    this.closed.abort();
  }

  update(state) {
    const actors = state.processes.filter((one) => one.name.startsWith("actor-"));
    this.names = actors.map((one) => one.name);
    this.over = state.over;
    this.chosen = (this.chosen ?? this.names.slice(0, 4)).filter((name) => this.names.includes(name));
    if (!this.chosen.length) this.chosen = this.names.slice(0, 4);
    const key = this.names.join() + this.chosen.join();
    if (key !== this.key) {
      this.key = key;
      this.show();
    }
    for (const tile of this.byName.values()) say(tile.dark, state.over ? ENDED : WAITING);
    say(this.note, state.over ? "This run has ended: there is nothing to see live." : "Actors draw only while somebody looks.");
  }

  show() {
    fill(this.chips, this.names.slice(0, 64).map((name) => el("button", { class: "chip", type: "button", "aria-pressed": String(this.chosen.includes(name)), onclick: () => this.toggle(name) }, name)));
    for (const name of this.chosen) if (!this.byName.has(name)) this.byName.set(name, new Tile(name));
    this.tiles.dataset.count = this.chosen.length;
    fill(this.tiles, this.chosen.length ? this.chosen.map((name) => this.byName.get(name).root) : el("p", { class: "empty" }, "No actor of this run has left a heartbeat."));
  }

  toggle(name) {
    const rest = this.chosen.filter((one) => one !== name);
    if (rest.length === this.chosen.length) this.chosen = [...rest, name].slice(-MAX_TILES);
    else if (rest.length) this.chosen = rest;
    sessionStorage.setItem("actors", JSON.stringify(this.chosen));
    this.key = this.names.join() + this.chosen.join();
    this.show();
  }

  // One question at a time: a slow connection gets fewer frames, never a queue of them.
  async watch() {
    const { signal } = this.closed;
    while (!signal.aborted) {
      const began = performance.now();
      if (!document.hidden && this.chosen?.length && !this.over) await this.look(signal).catch(() => {});
      await new Promise((done) => setTimeout(done, Math.max(40, PERIOD_MS - (performance.now() - began))));
    }
  }

  async look(signal) {
    const told = await getJson(runPath(this.run, `live?peers=${this.chosen.join(",")}`), signal);
    await Promise.all(
      told.actors.map(async (actor) => {
        const tile = this.byName.get(actor.peer);
        if (!tile) return;
        tile.update(actor);
        if (actor.fresh && actor.version !== tile.version) {
          tile.version = actor.version;
          const blob = await getBlob(runPath(this.run, `live/${actor.peer}/frame`), signal);
          if (blob) await tile.draw(blob);
        }
      }),
    );
  }
}

class Tile {
  constructor(name) {
    this.canvas = el("canvas", { class: "game", width: 256, height: 240 });
    this.place = el("span", {}, name);
    this.stage = el("span", { hidden: true });
    this.dark = el("div", { class: "dark" }, WAITING);
    this.action = el("b", {});
    this.how = el("span", {});
    this.step = el("span", {});
    const what = el("div", { class: "what" }, el("span", {}, this.action, this.how), this.step);
    this.qs = el("div", { class: "qs" });
    this.root = el(
      "article",
      { class: "card tile", "data-actor": name },
      el("div", { class: "screen" }, this.canvas, this.dark, el("div", { class: "over" }, this.place, this.stage)),
      el("footer", {}, what, this.qs),
    );
    this.frames = 0;
  }

  update(actor) {
    this.dark.hidden = actor.fresh;
    this.stage.hidden = !actor.stage;
    say(this.stage, `${actor.stage ?? ""}  x ${count(actor.x)}`);
    const labels = actor.action_labels ?? [];
    const action = labels[actor.action] ?? actor.action ?? "–";
    say(this.action, String(action));
    say(this.how, actor.was_random ? " at random" : " chosen");
    say(this.step, `ε ${figure(actor.epsilon)}, step ${count(actor.agent_steps)}`);
    this.showValues(actor, labels);
  }

  showValues(actor, labels) {
    const values = (actor.q_values ?? []).slice(0, 24);
    // Of a network that has diverged some are null.
    const known = values.filter(Number.isFinite);
    const least = Math.min(...known), most = Math.max(...known);
    const width = (value) => (Number.isFinite(value) ? (most > least ? 6 + (94 * (value - least)) / (most - least) : 50) : 0);
    const names = values.map((_, index) => String(labels[index] ?? index));
    fillOnce(this.qs, names, () => (this.bars = names.map((name) => new Bar(name))).map((bar) => bar.root));
    values.forEach((value, index) => this.bars[index].show(value, width(value), { isTaken: index === actor.action, isRandom: Boolean(actor.was_random) }));
  }

  async draw(blob) {
    const picture = await createImageBitmap(blob);
    // To set a size, even the same one, makes a new canvas.
    if (this.canvas.width !== picture.width) this.canvas.width = picture.width;
    if (this.canvas.height !== picture.height) this.canvas.height = picture.height;
    this.canvas.getContext("2d").drawImage(picture, 0, 0);
    picture.close();
    this.frames += 1;
    this.root.dataset.frames = this.frames;
  }
}

// The value of one action. It changes several times a second, so it is made once and then changed.
class Bar {
  constructor(name) {
    this.length = el("span", {});
    this.words = el("span", { class: "right" });
    this.root = el("div", { class: "q" }, el("span", {}, name), el("span", { class: "track" }, this.length), this.words);
  }

  show(value, percent, { isTaken, isRandom }) {
    this.root.toggleAttribute("data-taken", isTaken);
    this.root.toggleAttribute("data-random", isRandom);
    this.length.style.width = `${percent}%`;
    say(this.words, short(value, 2));
  }
}
