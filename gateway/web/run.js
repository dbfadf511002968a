// One run, followed to its end however often the connection breaks.

import { Failure, send } from "./api.js";
import { text } from "./strings.js";

const FIRST_PAUSE = 300;
const LAST_PAUSE = 5000;
/** How long a question is sent again of which nobody says that it has arrived. */
const PATIENCE = 30_000;
/** The gateway sends at least a comment every 15 s; after three times that nobody is there any more. */
const SILENCE = 45_000;

/**
 * Hand each event of a run to `onEvent`, once, in order, and return after `done`.
 *
 * The run is `{question}`, to be asked, or `{id}`, one that goes on. When the stream breaks off `onCut` is told, and it
 * is taken up again where it was, for as long as it takes. Throws a Failure when it is refused or no longer there.
 */
export async function follow(run, onEvent, onCut, signal) {
  const key = newKey();
  let last = 0;
  let cutAt = null;
  let pause = FIRST_PAUSE;
  for (;;) {
    let failure = new Failure(text.lost, "LOST");
    try {
      const response = run.id ? await resume(run.id, last, signal) : await ask(run.question, key, signal);
      for await (const event of eventsOf(response)) {
        if (event.seq <= last) continue;
        last = event.seq;
        run.id = event.run_id;
        cutAt = null;
        pause = FIRST_PAUSE;
        onEvent(event);
        if (event.type === "done") return;
      }
    } catch (error) {
      if (!(error instanceof Failure) || !error.passing) throw error;
      // A question that the server itself refuses has its answer, this first time.
      if (!run.id && !cutAt && !["OFFLINE", "LOST"].includes(error.reason)) throw error;
      failure = error;
    }
    if (!run.id && cutAt && Date.now() - cutAt > PATIENCE) throw failure;
    if (!cutAt) {
      cutAt = Date.now();
      onCut();
    }
    // Not all at the same moment, when a gateway comes back to many pages.
    await rest(pause * (0.5 + Math.random()), signal);
    pause = Math.min(pause * 2, LAST_PAUSE);
  }
}

function ask(question, key, signal) {
  return send("POST", "/api/chat/stream", { body: question, headers: { "Idempotency-Key": key }, signal });
}

async function resume(id, last, signal) {
  const path = `/api/runs/${encodeURIComponent(id)}/events`;
  const response = await send("GET", path, { headers: { "Last-Event-ID": String(last) }, signal });
  // There is nothing after the last event we have, and there won't be.
  if (response.status === 204) throw new Failure(text.lost, "LOST");
  return response;
}

/** Not crypto.randomUUID: it is there in secure contexts only. */
function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function* eventsOf(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await read(reader);
      if (done) return;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parse(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function read(reader) {
  let timer;
  const silent = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error("silent")), SILENCE);
  });
  try {
    return await Promise.race([reader.read(), silent]);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(text.lost, "LOST", [], true);
  } finally {
    clearTimeout(timer);
  }
}

function parse(block) {
  const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
  return data.length ? JSON.parse(data.join("\n")) : null;
}

/** Wait so many milliseconds, or until the browser is online again. */
function rest(milliseconds, signal) {
  signal.throwIfAborted();
  return new Promise((resolve, reject) => {
    const over = () => {
      clearTimeout(timer);
      removeEventListener("online", over);
      signal.removeEventListener("abort", over);
      if (signal.aborted) reject(signal.reason);
      else resolve();
    };
    const timer = setTimeout(over, milliseconds);
    addEventListener("online", over);
    signal.addEventListener("abort", over);
  });
}
