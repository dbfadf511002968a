// The API's page, made from /openapi.json.

import { byId, make } from "./dom.js";

const METHODS = ["get", "post", "put", "patch", "delete"];

const response = await fetch("/openapi.json");
const spec = await response.json();
const page = byId("docs");
page.replaceChildren(make("h1", {}, `${spec.info.title} API`), make("p", {}, spec.info.summary || ""));
for (const [tag, operations] of byTag()) {
  page.append(make("h2", {}, tag), ...operations.map(operation));
}
page.append(make("h2", {}, "Shapes"), ...Object.entries(spec.components.schemas).map(shape));
page.setAttribute("aria-busy", "false");

function byTag() {
  const groups = new Map();
  for (const [path, methods] of Object.entries(spec.paths)) {
    for (const method of METHODS.filter((one) => methods[one])) {
      const tag = (methods[method].tags || ["other"])[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push({ path, method, ...methods[method] });
    }
  }
  return groups;
}

function operation(one) {
  const body = make("div");
  if (one.description) body.append(make("p", {}, one.description));
  const parameters = one.parameters || [];
  if (parameters.length) body.append(make("h4", {}, "Parameters"), table(parameters.map((each) => [each.name, each.in, typeOf(each.schema), each.description || ""])));
  const sent = one.requestBody?.content["application/json"]?.schema;
  if (sent) body.append(make("h4", {}, "Body"), make("p", {}, typed(sent)));
  body.append(make("h4", {}, "Answers"));
  for (const [status, answer] of Object.entries(one.responses)) {
    const kinds = Object.entries(answer.content || {});
    const line = make("p", {}, make("code", {}, status), ` ${answer.description} `);
    for (const [kind, { schema }] of kinds) line.append(make("code", {}, kind), " ", schema && Object.keys(schema).length ? typed(schema) : "");
    body.append(line);
  }
  const head = make("summary", {}, make("span", { class: "method" }, one.method.toUpperCase()), make("span", { class: "path" }, one.path), make("span", { class: "says" }, one.summary || ""));
  return make("details", {}, head, body);
}

function shape([name, schema]) {
  const required = new Set(schema.required || []);
  const rows = Object.entries(schema.properties || {}).map(([field, each]) => [field + (required.has(field) ? "" : "?"), typed(each), each.description || ""]);
  return make("details", { id: name }, make("summary", {}, make("span", { class: "path" }, name), make("span", { class: "says" }, schema.description || "")), make("div", {}, table(rows)));
}

function table(rows) {
  const body = make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((cell) => make("td", {}, cell)))));
  return make("div", { class: "scroll" }, make("table", {}, body));
}

function typed(schema) {
  const name = /^#\/components\/schemas\/(.+)$/.exec(schema.$ref || schema.items?.$ref || "")?.[1];
  if (!name) return typeOf(schema);
  const open = () => { byId(name).open = true; };
  return make("a", { href: `#${name}`, onclick: open }, typeOf(schema));
}

function typeOf(schema = {}) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `${typeOf(schema.items)}[]`;
  if (schema.additionalProperties && schema.additionalProperties !== true) return `{ … : ${typeOf(schema.additionalProperties)} }`;
  return schema.type || "any";
}
