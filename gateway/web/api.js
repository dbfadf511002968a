// The gateway's API. One function turns every failure into a Failure that can be shown.

import { language, text } from "./strings.js";

export class Failure extends Error {
  /** `lines` say what is wrong with which field. */
  constructor(title, reason, lines = []) {
    super(title);
    this.reason = reason;
    this.lines = lines;
  }
}

async function send(method, path, body, signal) {
  const headers = { "Accept-Language": language };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(text.offline, "OFFLINE");
  }
  if (response.ok) return response;
  throw await failure(response);
}

async function failure(response) {
  if (response.status === 401) return new Failure(text.signIn, "UNAUTHENTICATED");
  const isProblem = (response.headers.get("Content-Type") || "").startsWith("application/problem+json");
  if (!isProblem) return new Failure(text.offline, "OFFLINE");
  const problem = await response.json();
  const lines = problem.errors.map((error) => `${error.field}: ${error.message}`);
  return new Failure(problem.title, problem.reason, lines);
}

export async function get(path) {
  return (await send("GET", path)).json();
}

export async function remove(path) {
  await send("DELETE", path);
}

/** Ask, and hand each event of the run to `onEvent`. Ends after `done`; throws a Failure when the line breaks first. */
export async function ask(question, onEvent, signal) {
  const response = await send("POST", "/api/chat/stream", question, signal);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let last = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      const blocks = (rest + value).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parse(block);
        if (!event) continue;
        last = event.type;
        onEvent(event);
      }
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(text.lost, "LOST");
  }
  if (last !== "done") throw new Failure(text.lost, "LOST");
}

function parse(block) {
  const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6));
  return data.length ? JSON.parse(data.join("\n")) : null;
}
