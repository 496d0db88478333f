// Films of the newest evaluation: its best and its worst episode, as contact sheets until they play.

import { getBlob, hasToken, runPath } from "./api.js";
import { el, fill } from "./dom.js";
import { count } from "./words.js";

const TITLES = { best: "Best episode", worst: "Worst episode" };

const forget = (urls) => urls.forEach((url) => URL.revokeObjectURL(url));

export class Films {
  constructor(run) {
    this.run = run;
    this.root = el("section", { class: "card films", hidden: true });
    this.urls = [];
  }

  close() {
    this.closed = true;
    forget(this.urls);
  }

  // A film that somebody watches stays until it has ended.
  update(films) {
    const key = JSON.stringify(films);
    const isWatched = [...this.root.querySelectorAll("video")].some((video) => !video.paused && !video.ended);
    if (key === this.key || isWatched) return;
    this.key = key;
    this.show(films);
  }

  async show(films) {
    const { key, urls: shown } = this;
    this.urls = [];
    const reels = await Promise.all(films.map((film) => this.reel(film)));
    forget(shown);
    if (this.closed || key !== this.key) return;
    this.root.hidden = !films.length;
    if (!films.length) return fill(this.root);
    fill(
      this.root,
      el("header", {}, el("h2", {}, `Films at ${count(films[0].global_step)} agent steps`)),
      el("div", { class: "reels" }, reels),
    );
  }

  async reel(film) {
    const [poster, source] = await Promise.all([this.address(film, "png"), this.address(film, "mp4")]);
    const video = el("video", { controls: true, muted: true, playsinline: "", preload: "none", poster, src: source, "data-film": film.which, "aria-label": TITLES[film.which] });
    return el("figure", {}, video, el("figcaption", {}, el("b", {}, TITLES[film.which]), el("span", {}, `${film.name}.mp4`)));
  }

  // A video asks by itself and sends no token, so where there is one the page asks for it.
  async address(film, kind) {
    const path = runPath(this.run, `films/${film.name}.${kind}`);
    if (!hasToken()) return `${path}?v=${encodeURIComponent(film.version)}`;
    const blob = await getBlob(path).catch(() => null);
    if (!blob) return null;
    const url = URL.createObjectURL(blob);
    this.urls.push(url);
    return url;
  }
}
