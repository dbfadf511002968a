// The gateway's API. One function turns every failure into a Failure that can be shown.

import { language, text } from "./strings.js";

const PASSING = [429, 502, 503, 504];

export class Failure extends Error {
  /** `lines` say what is wrong with which field; `passing` is true for what may be over in a moment. */
  constructor(title, reason, lines = [], passing = false) {
    super(title);
    this.reason = reason;
    this.lines = lines;
    this.passing = passing;
  }
}

export async function send(method, path, { body, headers = {}, signal } = {}) {
  const sent = { "Accept-Language": language, ...headers };
  if (body !== undefined) sent["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers: sent, signal, body: body === undefined ? undefined : JSON.stringify(body) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Failure(text.offline, "OFFLINE", [], true);
  }
  if (response.ok) return response;
  throw await failure(response);
}

async function failure(response) {
  const passing = PASSING.includes(response.status);
  if (response.status === 401) return new Failure(text.signIn, "UNAUTHENTICATED");
  const isProblem = (response.headers.get("Content-Type") || "").startsWith("application/problem+json");
  if (!isProblem) return new Failure(text.offline, "OFFLINE", [], passing);
  const problem = await response.json();
  const lines = problem.errors.map((error) => `${error.field}: ${error.message}`);
  return new Failure(problem.title, problem.reason, lines, passing);
}

export async function get(path) {
  return (await send("GET", path)).json();
}

export async function remove(path) {
  await send("DELETE", path);
}
