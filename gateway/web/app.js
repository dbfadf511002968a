// The page: asking, stopping, and the list of conversations. Which conversation is open stands in the URL.

import { Failure, get, remove } from "./api.js";
import { announce, byId, make } from "./dom.js";
import { follow } from "./run.js";
import { language, text, translate } from "./strings.js";
import { Answer, addFailure, addNotice, addQuestion, clearThread, scrollToEnd } from "./thread.js";

const state = { conversation: null, run: null, asking: null, nextCursor: null, modeNames: new Map() };

translate();
start();

function start() {
  byId("composer").addEventListener("submit", onSubmit);
  byId("question").addEventListener("keydown", onKey);
  byId("question").addEventListener("input", grow);
  byId("stop").addEventListener("click", stop);
  byId("new").addEventListener("click", () => show(null));
  byId("more").addEventListener("click", () => listConversations(state.nextCursor));
  byId("menu").addEventListener("click", () => toggleSide());
  addEventListener("keydown", (event) => { if (event.key === "Escape") toggleSide(false); });
  addEventListener("popstate", () => open(conversationInUrl()));
  for (const example of text.examples) {
    const use = () => { byId("question").value = example; grow(); byId("question").focus(); };
    byId("examples").append(make("li", {}, make("button", { type: "button", onclick: use }, example)));
  }
  attempt(loadMe);
  attempt(loadModes);
  listConversations();
  open(conversationInUrl());
  byId("question").focus();
}

/** Run something that asks the server; a failure is said in the thread. */
async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    addFailure(error.message, error.lines);
    return undefined;
  }
}

async function loadMe() {
  const me = await get("/api/me");
  byId("who").textContent = `${me.user} · ${me.subscription}`;
  byId("trial").hidden = !me.trial_model;
}

async function loadModes() {
  const { items } = await get("/api/modes");
  for (const mode of items.filter((one) => one.enabled)) {
    state.modeNames.set(mode.slug, mode.name);
    byId("mode").append(make("option", { value: mode.slug }, `${mode.icon} ${mode.name}`));
  }
}

async function onSubmit(event) {
  event.preventDefault();
  const message = byId("question").value.trim();
  if (!message || state.asking) return;
  byId("question").value = "";
  grow();
  const question = { message, thinking: document.querySelector("input[name=thinking]:checked").value, locale: language };
  if (byId("mode").value) question.mode = byId("mode").value;
  if (state.conversation) question.conversation_id = state.conversation;
  const bubble = addQuestion(message);
  const answer = new Answer(state.modeNames);
  await watch({ question }, answer, () => {
    // It was refused: the question goes back into the box.
    answer.element.remove();
    bubble.remove();
    byId("question").value ||= message;
    grow();
  });
}

/** Show a run, one to be asked or one that goes on, until it ends or another conversation is opened. */
async function watch(run, answer, onRefused) {
  const leaving = new AbortController();
  state.asking = leaving;
  setAsking(true);
  try {
    await follow(run, (event) => onEvent(event, answer), () => answer.cut(), leaving.signal);
    announce(text.answered);
  } catch (error) {
    if (error.name === "AbortError") return;
    if (!(error instanceof Failure)) throw error;
    answer.end();
    if (error.reason === "EVENTS_EXPIRED") {
      // It has been over for so long that only what it left is there.
      open(state.conversation);
      return;
    }
    if (!run.id) onRefused();
    addFailure(error.message, error.lines);
  } finally {
    if (state.asking === leaving) {
      state.asking = state.run = null;
      setAsking(false);
      byId("question").focus();
      listConversations();
    }
  }
}

function onEvent(event, answer) {
  if (event.type === "run_started") {
    state.run = event.run_id;
    byId("stop").disabled = false;
    if (state.conversation !== event.conversation_id) {
      state.conversation = event.conversation_id;
      history.pushState(null, "", urlOf(event.conversation_id));
      listConversations();
    }
  }
  answer.take(event);
}

async function stop() {
  byId("stop").disabled = true;
  byId("stop").textContent = text.stopping;
  const asking = state.asking;
  const asked = await attempt(async () => {
    await remove(`/api/runs/${encodeURIComponent(state.run)}`);
    return true;
  });
  if (asked || state.asking !== asking) return;
  byId("stop").disabled = false;
  byId("stop").textContent = text.stop;
}

function setAsking(asking) {
  byId("send").hidden = asking;
  byId("stop").hidden = !asking;
  byId("stop").disabled = true;
  byId("stop").textContent = text.stop;
}

async function listConversations(cursor = null) {
  const page = await attempt(() => get(`/api/conversations?limit=30${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`));
  if (!page) return;
  const rows = page.items.map(conversationRow);
  if (cursor) byId("conversations").append(...rows);
  else byId("conversations").replaceChildren(...rows);
  state.nextCursor = page.next_cursor;
  byId("more").hidden = !page.next_cursor;
  byId("none").hidden = byId("conversations").children.length > 0;
  markCurrent();
}

function conversationRow(conversation) {
  const title = conversation.title || text.untitled;
  const link = make("a", { href: urlOf(conversation.id), "data-id": conversation.id, onclick: (event) => { event.preventDefault(); show(conversation.id, title); } }, title);
  const erase = make("button", { type: "button", class: "quiet icon", "aria-label": text.remove(title), title: text.remove(title), onclick: () => erased(conversation.id, title) }, "×");
  return make("li", {}, link, erase);
}

async function erased(id, title) {
  if (!confirm(text.confirmRemove(title))) return;
  await attempt(async () => {
    await remove(`/api/conversations/${encodeURIComponent(id)}`);
    announce(text.removed);
    if (state.conversation === id) show(null);
  });
  await listConversations();
}

function show(id, title) {
  history.pushState(null, "", urlOf(id));
  toggleSide(false);
  if (title) announce(text.opened(title));
  open(id);
}

/** Show a conversation; a run that goes on in another is left to itself. */
async function open(id) {
  state.asking?.abort();
  state.asking = state.run = null;
  setAsking(false);
  state.conversation = id;
  clearThread();
  markCurrent();
  if (!id) {
    byId("question").focus();
    return;
  }
  byId("welcome").hidden = true;
  await attempt(async () => {
    // Asked first: the answer of a run that ends meanwhile is among the messages then.
    const going = await runOf(id);
    const messages = await allMessages(id);
    if (state.conversation !== id) return;
    let waiting = null;
    const answered = new Set(messages.map((message) => message.reply_to));
    for (const message of messages) {
      if (message.role === "assistant") new Answer(state.modeNames).restore(message);
      else {
        addQuestion(message.content);
        if (answered.has(message.id)) continue;
        if (going && message.run_id === going.run_id) waiting = new Answer(state.modeNames);
        else addNotice(text.noAnswer);
      }
    }
    scrollToEnd();
    // A question asked meanwhile comes first, and is refused as long as this one isn't answered.
    if (state.asking) waiting?.end();
    else if (waiting) await watch({ id: going.run_id }, waiting);
  });
}

/** The run that goes on in a conversation; null when there is none, or nobody who knows. */
async function runOf(id) {
  try {
    return (await get(`/api/runs?conversation_id=${encodeURIComponent(id)}&status=running&limit=1`)).items[0] ?? null;
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return null;
  }
}

async function allMessages(id) {
  const messages = [];
  let cursor = "";
  do {
    const page = await get(`/api/conversations/${encodeURIComponent(id)}/messages?limit=100&cursor=${encodeURIComponent(cursor)}`);
    messages.push(...page.items);
    cursor = page.next_cursor;
  } while (cursor);
  return messages;
}

function markCurrent() {
  for (const link of byId("conversations").querySelectorAll("a")) {
    if (link.dataset.id === state.conversation) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function conversationInUrl() {
  return new URLSearchParams(location.search).get("c");
}

function urlOf(id) {
  const query = new URLSearchParams(location.search);
  if (id) query.set("c", id);
  else query.delete("c");
  const written = query.toString();
  return written ? `/?${written}` : "/";
}

function toggleSide(open = !document.body.classList.contains("side-open")) {
  document.body.classList.toggle("side-open", open);
  byId("menu").setAttribute("aria-expanded", String(open));
}

function onKey(event) {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    byId("composer").requestSubmit();
  }
}

function grow() {
  const box = byId("question");
  box.rows = Math.min(10, Math.max(2, box.value.split("\n").length));
}
