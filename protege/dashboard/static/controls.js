// Steering a training: what can be asked of it, for whoever has the token, and how its controls stand, for everybody.

import { short, withUnit } from "./numbers.js";
import { address, ask, el, toast, trust, write } from "./page.js";

const PATIENCE_MS = 5000; // what was just asked for is shown for so long before the run confirms it
const NO_TOKEN = "needs the token: open the page by the link printed when the server started";

/** The controls of one run: `actions` are buttons that do something once, `element` is the panel of the others. */
export class Controls {
  /** @type {(() => void)[]} how each switch shows what has become of it */
  parts = [];
  built = "";

  constructor(run, controls) {
    this.run = run;
    this.controls = controls;
    this.actions = el("div", { class: "controls" });
    this.summary = el("span", { class: "steer-summary" });
    this.groups = el("div", { class: "steer-groups" });
    this.last = el("output", { class: "steer-last" });
    this.element = el(
      "details",
      { class: "steer", open: matchMedia("(min-width: 48rem)").matches },
      el("summary", {}, "Controls ", this.summary),
      this.groups,
      this.last,
    );
    this.build();
  }

  /** Make the parts anew: the run began or ended, learned new commands, or the token came or went. */
  build() {
    const { run } = this;
    const running = run.status === "running";
    const understood = (control) => (control.group === "run" ? running : running && control.name in run.controls);
    this.built = JSON.stringify([run.status, Object.keys(run.controls), trust.ok]);
    const csv = { class: "button", href: address("runs", run.name, "metrics.csv"), download: `${run.name}.csv` };
    const offered = this.controls.filter(understood);
    const hint = running && !trust.ok ? el("small", {}, "view only") : null;
    this.actions.replaceChildren(
      ...offered.filter((control) => control.group === "run").map((control) => this.button(control)),
      el("a", csv, "CSV"),
      ...(hint ? [hint] : []),
    );
    this.parts = [];
    const others = offered.filter((control) => control.group !== "run");
    this.element.hidden = !others.length;
    this.groups.replaceChildren(
      ...[...new Set(others.map((control) => control.group))].map((group) =>
        el(
          "fieldset",
          { disabled: !trust.ok, title: trust.ok ? null : NO_TOKEN },
          el("legend", {}, group),
          others.filter((control) => control.group === group).map((control) => this.make(control)),
        ),
      ),
    );
  }

  /** How everything stands now. */
  show() {
    const { run } = this;
    if (this.built !== JSON.stringify([run.status, Object.keys(run.controls), trust.ok])) this.build();
    for (const part of this.parts) part();
    const changed = this.controls.filter((control) => run.isChanged(control.name)).map((control) => control.label);
    write(this.summary, changed.length ? `changed: ${changed.join(", ")}` : "");
    const last = run.events.findLast((event) => ["command", "report", "fresh", "resumed"].includes(event.kind));
    this.last.dataset.kind = last?.kind ?? "";
    this.last.hidden = last?.kind !== "command" && last?.kind !== "report"; // nobody has asked for anything yet
    if (!this.last.hidden) write(this.last, last.kind === "command" ? last.text.replace(/^\w+: /, "") : last.text);
  }

  // --- kinds of controls -----------------------------------------------------------------------------------------------

  make(control) {
    if (control.argument === "toggle") return this.toggle(control);
    return control.argument === "number" ? this.number(control) : this.button(control);
  }

  /** A button; one that cannot be taken back wants a second click. */
  button(control) {
    let sure = !control.confirm;
    const press = async (event) => {
      const button = event.currentTarget;
      if (!sure) {
        sure = true;
        button.textContent = `Really ${control.label.toLowerCase()}?`;
        setTimeout(() => {
          sure = false;
          button.textContent = control.label;
        }, 4000);
        return;
      }
      if (await this.send(control, {})) toast(`${control.label}: sent to ${this.run.name}`);
    };
    const title = trust.ok ? control.meaning : NO_TOKEN;
    const properties = { type: "button", disabled: !trust.ok, "data-command": control.name, title, onclick: press };
    return el("button", properties, control.label);
  }

  toggle(control) {
    const input = el("input", { type: "checkbox", role: "switch", "data-command": control.name });
    let asked = { until: 0 };
    input.addEventListener("change", async () => {
      asked = { on: input.checked, until: Date.now() + PATIENCE_MS };
      if (!(await this.send(control, { on: input.checked }))) asked = { until: 0 };
      this.show();
    });
    this.parts.push(() => {
      const { on } = this.run.controls[control.name];
      input.checked = Date.now() < asked.until ? asked.on : on;
      if (input.checked === on) asked = { until: 0 };
    });
    return el("label", { class: "switch", title: control.meaning }, input, control.label);
  }

  /** A number: empty while the schedule has it, else what it is fixed at; beside it what it is now. */
  number(control) {
    const isFraction = control.unit === "fraction";
    const scale = isFraction ? 100 : 1;
    const input = el("input", {
      type: "number",
      min: control.low * scale,
      max: control.high * scale,
      step: "any",
      "aria-label": `${control.group}: ${control.label}${isFraction ? ", percent" : ""}`,
      "data-command": control.name,
    });
    let typing = false;
    const set = async (argument) => {
      typing = false;
      await this.send(control, argument);
      this.show();
    };
    input.addEventListener("input", () => (typing = true));
    input.addEventListener("keydown", (event) => {
      if (event.key === "Escape") typing = false;
    });
    input.addEventListener("change", () => {
      if (!input.reportValidity()) return;
      set(input.value === "" ? { schedule: true } : { value: Number((input.valueAsNumber / scale).toPrecision(12)) });
    });
    const now = el("output", { class: "steer-now" });
    const schedule = this.small("schedule", `${control.label} back on schedule`, () => set({ schedule: true }));
    const metric = this.run.metrics.find((one) => one.control === control.name);
    this.parts.push(() => {
      const { value, overridden, peak } = this.run.controls[control.name];
      const current = metric ? this.run.last(metric.name) : null;
      write(now, `${isFraction ? withUnit(current, "fraction") : short(current)}${overridden ? "*" : ""}`);
      now.classList.toggle("overridden", overridden);
      schedule.setAttribute("aria-pressed", String(value === null));
      input.placeholder = text(peak ?? current, scale);
      if (!typing) input.value = text(value, scale);
    });
    return el(
      "div",
      { class: "number", title: control.meaning },
      el("span", {}, control.label, " ", now),
      el(
        "div",
        { class: "number-row" },
        this.small(isFraction ? "−" : "÷2", `${control.label} down`, () => set({ step: -1 }), `${control.name}-down`),
        input,
        this.small(isFraction ? "+" : "×2", `${control.label} up`, () => set({ step: 1 }), `${control.name}-up`),
        schedule,
      ),
    );
  }

  /**
   * @param {string} label
   * @param {string} meaning
   * @param {() => void} onclick
   * @param {string | null} name
   */
  small(label, meaning, onclick, name = null) {
    return el("button", { type: "button", title: meaning, "aria-label": meaning, "data-step": name, onclick }, label);
  }

  async send(control, given) {
    try {
      await ask(address("runs", this.run.name, "commands"), {
        method: "POST",
        headers: { ...trust.headers(), "content-type": "application/json" },
        body: JSON.stringify({ command: control.name, arguments: given }),
      });
      return true;
    } catch (error) {
      toast(`${control.label}: ${error.message}`, "bad");
      trust.check();
      return false;
    }
  }
}

/** A number as an input takes it. */
function text(value, scale) {
  if (value === null || value === undefined) return "";
  const number = Number((value * scale).toPrecision(3));
  return number && Math.abs(number) < 0.001 ? number.toExponential() : String(number);
}
