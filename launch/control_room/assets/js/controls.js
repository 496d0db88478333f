// Controls: what may be changed in a run that goes on, with who changed what and when.

import { getJson, postJson, runPath } from "./api.js";
import { el, fill } from "./dom.js";
import { clock, figure } from "./words.js";

const ACTIONS = { checkpoint: "Save", stop: "Stop" };

export class ControlsView {
  constructor(root, page) {
    this.page = page;
    this.run = page.run;
    this.root = root;
    this.load();
  }

  close() {}

  update(state) {
    this.state = state;
    for (const shown of this.root.querySelectorAll("[data-metric]")) shown.textContent = `; now ${figure(state.metrics[shown.dataset.metric])}`;
  }

  async load() {
    const told = await getJson(runPath(this.run, "controls")).catch(() => null);
    if (!told) return;
    if (!told.allowed) {
      fill(this.root, el("p", { class: "empty" }, "Controls are off in this control room. One that can change runs is started with python launch/dashboard.py RUNS --allow-control, where RUNS is the folder of the runs."));
      return;
    }
    this.who = el("input", { type: "text", maxlength: 40, value: localStorage.getItem("who") ?? "", placeholder: "your name", id: "who", oninput: (event) => localStorage.setItem("who", event.target.value) });
    this.history = el("div", {});
    const forms = told.controls.map((control) => this.form(control));
    fill(
      this.root,
      el(
        "div",
        { class: "grid desk" },
        el("section", { class: "card" }, el("header", {}, el("h2", {}, "Change this run"), el("label", { class: "note who" }, "as ", this.who)), forms),
        el("section", { class: "card" }, el("header", {}, el("h2", {}, "Changed so far")), this.history),
      ),
    );
    this.showHistory(told.history);
    if (this.state) this.update(this.state);
  }

  form(control) {
    const isAction = control.kind === "action";
    const input = isAction ? "" : el("input", { type: "number", step: "any", min: control.least, max: control.most, "aria-label": control.title });
    const button = el("button", { class: control.name === "stop" ? "plain danger" : "plain", type: "button" }, ACTIONS[control.name] ?? "Set");
    const output = el("output", {});
    button.addEventListener("click", () => this.send(control, input, button, output));
    return el(
      "div",
      { class: "control", "data-control": control.name },
      el("div", {}, el("b", {}, control.title), el("div", { class: "note" }, control.meaning, control.metric ? el("span", { "data-metric": control.metric }) : "")),
      el("div", { class: "act" }, input, button),
      output,
    );
  }

  async send(control, input, button, output) {
    if (control.name === "stop" && !confirm("Stop this run? It saves first and can be resumed.")) return;
    const value = input ? input.valueAsNumber : null;
    if (input && !Number.isFinite(value)) return this.tell(output, "bad", "give a number");
    button.disabled = true;
    this.tell(output, "", "asking …");
    const { ok, told } = await postJson(runPath(this.run, "control"), { name: control.name, value, who: this.who.value }).catch((error) => ({ ok: false, told: { error: `not ${input ? "set" : "done"}: ${error.message}` } }));
    button.disabled = false;
    if (ok) this.tell(output, "good", `${told.words}${told.value === null ? "" : `: ${figure(told.value)}`}`);
    else this.tell(output, "bad", told.error ?? told.detail ?? "refused");
    const fresh = await getJson(runPath(this.run, "controls")).catch(() => null);
    if (fresh) this.showHistory(fresh.history);
  }

  tell(output, level, words) {
    output.dataset.level = level;
    output.textContent = words;
  }

  showHistory(history) {
    if (!history.length) return fill(this.history, el("p", { class: "note" }, "Nobody has changed anything."));
    fill(
      this.history,
      el("ul", { class: "feed" }, history.map((one) => el("li", {}, el("i", { class: "dot", "data-level": one.refused ? "bad" : "good" }), el("span", {}, `${one.name} ${one.name in ACTIONS ? "" : figure(one.value)} `, el("span", { class: "note" }, `by ${one.who ?? "?"}${one.refused ? `, refused: ${one.refused}` : ""}`)), el("time", {}, clock(one.time))))),
    );
  }
}
