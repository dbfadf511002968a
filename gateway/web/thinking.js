// The steps of a think: live while it runs, or restored from its tree.

import { announce, make } from "./dom.js";
import { render } from "./markdown.js";
import { duration, text } from "./strings.js";

const ICONS = { decompose: "🔍", execute: "📊", evaluate: "⚖️", critique: "🔎", refine: "✏️", synthesize: "🎯", merge: "🔀" };
const ICON = "💭";

export class Thinking {
  constructor() {
    this.title = make("span", { class: "thinking-title" });
    this.meta = make("span", { class: "meta" });
    this.list = make("ol", { class: "steps" });
    this.element = make("details", { class: "thinking", open: true }, make("summary", {}, this.title, this.meta), this.list);
    this.steps = new Map();
    this.setRunning(true);
  }

  setRunning(running) {
    this.element.classList.toggle("running", running);
    this.title.textContent = running ? text.thinkingNow : text.thought;
  }

  /** A `thinking_step` event. */
  step(event) {
    let row = this.steps.get(event.node_id);
    if (!row) {
      row = new Step(event.icon || ICONS[event.role] || ICON);
      this.steps.set(event.node_id, row);
      this.list.append(row.element);
    }
    row.set(event);
    if (event.status === "started") announce(text.stepOf(event.step, Math.max(event.total, event.step), event.summary));
  }

  /** A `thinking_completed` event, or the `thinking` of a stored message: each step gets its content. */
  complete(thinking) {
    const nodes = flatten(thinking.tree_data.nodes);
    for (const node of nodes) {
      let row = this.steps.get(node.id);
      if (!row) {
        row = new Step(ICONS[node.role] || ICON);
        this.steps.set(node.id, row);
        this.list.append(row.element);
      }
      row.set({ ...node, status: node.failure ? "failed" : "completed", summary: node.summary });
      row.fill(node.content);
    }
    this.end();
    const parts = [text.steps(nodes.length), duration(thinking.duration_ms), text.tokens(thinking.tokens_used)];
    this.meta.textContent = parts.join(" · ");
    if (thinking.partial) this.meta.append(make("span", { class: "badge" }, text.partial));
  }

  /** Nothing more will come. */
  end() {
    this.setRunning(false);
    for (const row of this.steps.values()) row.end();
  }
}

class Step {
  constructor(icon) {
    this.summary = make("span", { class: "step-summary" });
    this.meta = make("span", { class: "meta" });
    this.mark = make("span", { class: "mark" });
    this.state = make("span", { class: "hidden" });
    this.head = make("span", { class: "step-head" }, make("span", { class: "step-icon", "aria-hidden": "true" }, icon), this.summary, this.meta, this.mark, this.state);
    this.element = make("li", {}, this.head);
  }

  set(event) {
    this.element.className = `step ${event.status}`;
    if (event.summary) this.summary.textContent = event.summary;
    const parts = [];
    if (event.branch) parts.push(event.branch);
    if (event.status !== "started") {
      if (event.duration_ms) parts.push(duration(event.duration_ms));
      if (event.tokens) parts.push(text.tokens(event.tokens));
    }
    this.meta.textContent = parts.join(" · ");
    this.state.textContent = { started: text.running, completed: text.completed, failed: text.failed }[event.status];
  }

  fill(content) {
    if (!content || this.element.querySelector("details")) return;
    const details = make("details", { class: "step-content" }, make("summary", {}, this.head));
    // Rendered when it is opened: a long think has much text that nobody may want to see.
    details.addEventListener("toggle", () => details.append(make("div", { class: "prose" }, render(content))), { once: true });
    this.element.replaceChildren(details);
  }

  end() {
    if (this.element.classList.contains("started")) {
      this.element.className = "step failed";
      this.state.textContent = text.failed;
    }
  }
}

function flatten(nodes) {
  const found = [];
  const waiting = [...nodes].reverse();
  while (waiting.length) {
    const node = waiting.pop();
    found.push(node);
    waiting.push(...[...node.children].reverse());
  }
  return found;
}
