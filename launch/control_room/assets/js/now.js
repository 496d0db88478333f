// Now: the run in figures, and who waits for whom.

import { el, fillOnce, say, seriesShade, spark } from "./dom.js";
import { Films } from "./films.js";
import { ago, clock, count, figure, percent, short } from "./words.js";

const PARTS = { actors: "Actors", learner: "Learner", replay: "Replay server" };
const MIN_LABELLED_SHARE = 0.02;

export class NowView {
  constructor(root, page) {
    this.page = page;
    this.hero = el("section", { class: "card hero" });
    this.kpis = el("section", { class: "grid kpis" });
    this.left = el("section", { class: "card" });
    this.heard = el("span", { class: "note" });
    this.news = el("div", {});
    this.right = el("section", { class: "card" }, el("header", {}, el("h2", {}, "What happened"), this.heard), this.news);
    this.films = new Films(page.run);
    root.append(this.hero, this.kpis, el("div", { class: "grid two" }, this.left, this.right), this.films.root);
  }

  update(state) {
    this.showHero(state);
    this.showFigures(state);
    this.showEvaluations(state);
    this.showNews(state);
    this.films.update(state.films);
  }

  showHero(state) {
    const waits = Object.keys(PARTS).map((part) => state.metrics[`wait_share_${part}`]);
    fillOnce(this.hero, [state.sentence, state.shares, waits], () => [
      el("div", {}, el("h2", {}, "Bottleneck"), el("p", { class: "sentence", id: "sentence" }, state.sentence)),
      el("div", { class: "waits" }, Object.entries(PARTS).map(([part, name]) => waitRow(part, name, state))),
    ]);
  }

  showFigures({ metrics, sparks, evaluations: [evaluation], about }) {
    fillOnce(this.kpis, [metrics, sparks, evaluation, about], () => figures(metrics, sparks, evaluation, about));
  }

  showEvaluations({ evaluations }) {
    fillOnce(this.left, evaluations, () => evaluationTable(evaluations));
  }

  showNews({ processes, metrics, over }) {
    const heard = typeof metrics.time === "number" ? `${over ? "last line" : "heard"} ${ago(metrics.time)}` : "";
    say(this.heard, heard);
    const items = newsOf(processes);
    fillOnce(this.news, items, () =>
      items.length
        ? el("ul", { class: "feed" }, items.map((one) => el("li", {}, el("i", { class: "dot", "data-level": one.level }), el("span", {}, one.words), el("time", {}, one.when.slice(5, 16)))))
        : el("p", { class: "note" }, "No process has had to be started again."),
    );
  }

  close() {
    this.films.close();
  }
}

function figures(m, sparks, evaluation, about) {
  const budget = about.max_agent_steps ? `of ${short(about.max_agent_steps)}` : "";
  return [
    kpi("Agent steps", short(m.global_step), budget, `${figure(m.env_steps_per_sec)} per second`, sparks.env_steps_per_sec),
    kpi("Updates", short(m.updates), "", `${figure(m.updates_per_sec)} per second`, sparks.updates_per_sec),
    evaluationCard(evaluation),
    kpi("Clears in training", count(m.clears_total), `of ${short(m.episodes_total)}`, `${percent(m.recent_clear_rate)} of the last 100`, sparks.recent_clear_rate),
    kpi("Mean x", count(m.env_mean_x_pos), "pixels", `best ${count(m.env_max_x_pos)}`, sparks.env_mean_x_pos),
    kpi("Return", figure(m.recent_return_p50), "median", `90 %: ${figure(m.recent_return_p90)}, 99 %: ${figure(m.recent_return_p99)}`, sparks.recent_return_p50),
    kpi("Loss", figure(m.loss_total ?? last(sparks.loss_total)), "", `gradient norm ${figure(m.grad_norm)}`, sparks.loss_total),
    kpi("Mean Q", figure(m.q_mean ?? last(sparks.q_mean)), "", `learning rate ${figure(m.learning_rate)}`, sparks.q_mean),
    kpi("Samples per insert", figure(m.samples_per_insert), `target ${figure(m.samples_per_insert_target)}`, "uses of each agent step", sparks.samples_per_insert),
    kpi("Replay", percent(m.replay_fill_rate), "full", `${short(m.replay_size)} of ${short(m.replay_capacity)} transitions`, sparks.replay_fill_rate),
    kpi("Weight lag", figure(m.weight_lag_updates), "updates", `version ${short(m.weight_version)}`, sparks.weight_lag_updates),
    kpi("Actors", count(m.actors_alive), "alive", `${count(m.replay_bad_messages_total)} bad messages`, []),
  ];
}

function evaluationTable(evaluations) {
  const heads = ["Agent steps", "Stage", "Clear rate", "95 % interval", "Median x", "Return", "When"];
  const rows = evaluations.slice(0, 8).map((one) =>
    el(
      "tr",
      {},
      el("td", { class: "num" }, count(one.global_step)),
      el("td", {}, one.stage ?? ""),
      el("td", { class: "num" }, percent(one.clear_rate)),
      el("td", { class: "num" }, `${percent(one.clear_rate_low)} to ${percent(one.clear_rate_high)}`),
      el("td", { class: "num" }, count(one.x_p50)),
      el("td", { class: "num" }, figure(one.return_mean)),
      el("td", { class: "num faint" }, clock(one.time)),
    ),
  );
  const numeric = (name) => ({ class: name === "Stage" ? null : "num" });
  return [
    el("header", {}, el("h2", {}, "Greedy evaluations"), el("span", { class: "note" }, "the figures to quote")),
    rows.length
      ? el("div", { class: "scroll-x" }, el("table", {}, el("thead", {}, el("tr", {}, heads.map((name) => el("th", numeric(name), name)))), el("tbody", {}, rows)))
      : el("p", { class: "note" }, "No evaluation has ended yet."),
  ];
}

function newsOf(processes) {
  const news = processes.flatMap((one) => one.ends.map((end) => ({ when: end.when, level: end.again ? "waiting" : "bad", words: `${one.name}: ${end.reason}, ${end.again ? "started again" : "switched off"}` })));
  news.sort((a, b) => (a.when < b.when ? 1 : -1));
  const down = processes.filter((one) => one.level === "bad").map((one) => ({ level: "bad", words: `${one.name} is ${one.words}`, when: "" }));
  return [...down, ...news].slice(0, 9);
}

// A line without an update has no loss; the one before it has.
const last = (values) => values.findLast((value) => value !== null);

function waitRow(part, name, { metrics, shares }) {
  const waits = metrics[`wait_share_${part}`];
  const phases = (shares[part] ?? []).filter((one) => one.share > 0.004).sort((a, b) => b.share - a.share);
  const bars = phases.map((one, index) =>
    el("span", { title: `${one.phase}: ${percent(one.share, 1)} (${one.meaning})`, style: { width: percent(one.share, 2).replace(" ", ""), background: seriesShade(index), opacity: "0.85" } }),
  );
  if (!bars.length && typeof waits === "number") bars.push(el("span", { style: { width: percent(1 - waits, 2).replace(" ", ""), background: seriesShade(0), opacity: "0.6" } }));
  const named = phases.filter((one) => one.share >= MIN_LABELLED_SHARE).slice(0, 5);
  const key = named.map((one, index) => el("span", {}, el("i", { style: { background: seriesShade(index) } }), `${one.phase} ${percent(one.share)}`));
  return el(
    "div",
    {},
    el("div", { class: "wait-row" }, el("span", {}, name), el("div", { class: "track", title: "coloured: at work; empty: waiting" }, bars), el("span", { class: "right note", title: "share of the time that it waits" }, percent(waits))),
    el("div", { class: "legend" }, key, key.length ? el("span", { class: "faint" }, `waits ${percent(waits)}`) : ""),
  );
}

function kpi(title, value, small, sub, values) {
  return el(
    "article",
    { class: "card kpi" },
    el("h2", {}, title),
    el("div", { class: "value" }, value, small ? el("small", {}, ` ${small}`) : ""),
    el("div", { class: "sub", title: sub }, sub),
    spark(values ?? []),
  );
}

function evaluationCard(one) {
  if (!one) return kpi("Evaluation", "–", "", "no greedy episode was counted yet", []);
  const span = { left: `${100 * one.clear_rate_low}%`, width: `${100 * (one.clear_rate_high - one.clear_rate_low)}%` };
  return el(
    "article",
    { class: "card kpi", title: "share of greedy episodes that clear, with its 95 % Wilson interval" },
    el("h2", {}, "Evaluation clear rate"),
    el("div", { class: "value" }, percent(one.clear_rate), el("small", {}, ` ${percent(one.clear_rate_low)} to ${percent(one.clear_rate_high)}`)),
    el("div", { class: "sub" }, `${one.stage ?? "?"}: ${count(one.clears)} of ${count(one.episodes)} at ${short(one.global_step)}`),
    el("div", { class: "interval" }, el("span", { class: "range", style: span }), el("span", { class: "point", style: { left: `${100 * one.clear_rate}%` } })),
  );
}
