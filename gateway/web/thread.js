// The thread: questions, the thinking about them, answers.

import { announce, byId, make } from "./dom.js";
import { render } from "./markdown.js";
import { text } from "./strings.js";
import { Thinking } from "./thinking.js";

const RENDER_EVERY = 80;

const thread = () => byId("thread");

export function clearThread() {
  for (const child of [...thread().children]) if (child.id !== "welcome") child.remove();
  byId("welcome").hidden = false;
}

export function addQuestion(content) {
  byId("welcome").hidden = true;
  const element = make("article", { class: "question", "aria-label": text.you }, content);
  thread().append(element);
  return element;
}

/** What went wrong, said where the answer would be. */
export function addFailure(title, lines = []) {
  // Several requests that fail for one reason are one failure.
  if (thread().lastElementChild.querySelector(":scope > strong")?.textContent === title) return;
  const box = make("div", { class: "alert", role: "alert" }, make("strong", {}, title));
  for (const line of lines) box.append(make("p", {}, line));
  byId("welcome").hidden = true;
  thread().append(box);
  scrollToEnd();
}

export function addNotice(message) {
  thread().append(make("p", { class: "notice" }, message));
}

/** One answer: fed with the events of its run, or with a stored message. */
export class Answer {
  constructor(modeNames) {
    this.modeNames = modeNames;
    this.notices = make("div");
    this.waiting = make("p", { class: "waiting" }, make("span", { class: "spinner", "aria-hidden": "true" }), text.waiting);
    this.slot = make("div");
    this.lost = make("p", { class: "waiting", hidden: true }, make("span", { class: "spinner", "aria-hidden": "true" }), text.returning);
    this.body = make("div", { class: "prose" });
    this.foot = make("p", { class: "meta foot" });
    this.element = make("article", { class: "answer", "aria-label": "LintellO", "aria-busy": "true" }, this.notices, this.waiting, this.slot, this.body, this.lost, this.foot);
    this.thinking = null;
    this.content = "";
    this.timer = null;
    thread().append(this.element);
    scrollToEnd();
  }

  /** One event of the run; types that aren't known are passed over. */
  take(event) {
    const pinned = isAtEnd();
    this.lost.hidden = true;
    switch (event.type) {
      case "mode_switched":
        this.note(text.inMode(this.modeNames.get(event.to) ?? event.to));
        break;
      case "thinks_quota_exceeded":
      case "quota_exceeded":
        this.note(event.message);
        break;
      case "thinking_started":
        this.think();
        break;
      case "thinking_step":
        this.think().step(event);
        break;
      case "thinking_completed":
        this.think().complete(event);
        break;
      case "content":
        if (!this.content) announce(text.answering);
        this.waiting.hidden = true;
        this.content += event.content;
        this.timer ??= setTimeout(() => this.draw(), RENDER_EVERY);
        break;
      case "error":
        this.notices.append(make("div", { class: "alert", role: "alert" }, make("strong", {}, event.message), make("p", {}, event.retryable ? text.retry : "")));
        break;
      case "done":
        this.finish(event);
        break;
    }
    if (pinned) scrollToEnd();
  }

  /** The connection broke, and is being made again. */
  cut() {
    const pinned = isAtEnd();
    this.waiting.hidden = true;
    this.lost.hidden = false;
    announce(text.returning);
    if (pinned) scrollToEnd();
  }

  /** A stored message. */
  restore(message) {
    if (message.thinking) {
      this.think().complete(message.thinking);
      this.thinking.element.open = false;
    }
    this.content = message.content;
    this.finish({ model: message.model, tokens_used: message.tokens, partial: message.partial });
  }

  /** Nothing more will come. */
  end() {
    this.waiting.hidden = this.lost.hidden = true;
    this.thinking?.end();
    this.draw();
    this.element.setAttribute("aria-busy", "false");
  }

  think() {
    if (!this.thinking) {
      this.waiting.hidden = true;
      this.thinking = new Thinking();
      this.slot.append(this.thinking.element);
    }
    return this.thinking;
  }

  finish(done) {
    this.end();
    if (this.thinking && this.content) this.thinking.element.open = false;
    const parts = [];
    if (done.model) parts.push(done.model);
    if (done.tokens_used) parts.push(text.tokens(done.tokens_used));
    this.foot.textContent = parts.join(" · ");
    if (done.partial) this.foot.append(make("span", { class: "badge" }, text.partial));
  }

  draw() {
    clearTimeout(this.timer);
    this.timer = null;
    const pinned = isAtEnd();
    this.body.replaceChildren(render(this.content));
    if (pinned) scrollToEnd();
  }

  note(message) {
    this.notices.append(make("p", { class: "notice" }, message));
  }
}

function isAtEnd() {
  const box = thread();
  return box.scrollHeight - box.scrollTop - box.clientHeight < 80;
}

export function scrollToEnd() {
  thread().scrollTop = thread().scrollHeight;
}
