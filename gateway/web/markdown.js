// A safe Markdown renderer: it makes elements and text nodes, never HTML, and links lead to http(s) only.

import { make } from "./dom.js";

const FENCE = /^\s{0,3}(```+|~~~+)/;
const HEADING = /^(#{1,6})\s+(.*?)\s*#*$/;
const RULE = /^\s{0,3}([-*_])(\s*\1){2,}\s*$/;
const QUOTE = /^\s{0,3}>\s?/;
const ITEM = /^(\s*)([-*+•]|\d{1,9}[.)])\s+(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
const INLINE = /(`+)(.+?)\1(?!`)|\*\*(?=\S)(.+?)\*\*|__(?=\S)(.+?)__|\*(?=[^\s*])([^*]+)\*|(?<!\w)_(?=[^\s_])([^_]+)_(?!\w)|~~(?=\S)(.+?)~~|\[([^\[\]]+)\]\((\S+?)\)|(https?:\/\/[^\s<>()]+[^\s<>().,;:!?'"»])|<br\s*\/?>|\\([\\`*_{}[\]()#+\-.!|~>])/;
const DEPTH = 20;

/** The blocks of a Markdown text, as a fragment. */
export function render(source) {
  const fragment = document.createDocumentFragment();
  blocks(source.replace(/\r\n?/g, "\n").split("\n"), fragment, 0);
  return fragment;
}

function blocks(lines, into, depth) {
  let at = 0;
  while (at < lines.length) {
    const line = lines[at];
    let found;
    if (!line.trim()) at += 1;
    else if ((found = FENCE.exec(line))) at = code(lines, at, found[1], into);
    else if ((found = HEADING.exec(line))) {
      // The page's own heading stands above those of an answer.
      into.append(make(`h${Math.min(found[1].length + 1, 6)}`, {}, inline(found[2])));
      at += 1;
    } else if (RULE.test(line)) {
      into.append(make("hr"));
      at += 1;
    } else if (QUOTE.test(line) && depth < DEPTH) at = quote(lines, at, into, depth);
    else if (ITEM.test(line) && depth < DEPTH) at = list(lines, at, into, depth);
    else if (line.includes("|") && at + 1 < lines.length && lines[at + 1].includes("-") && DIVIDER.test(lines[at + 1])) at = table(lines, at, into);
    else at = paragraph(lines, at, into);
  }
}

function code(lines, start, mark, into) {
  let end = start + 1;
  while (end < lines.length && !lines[end].trim().startsWith(mark)) end += 1;
  into.append(make("pre", { tabindex: "0" }, make("code", {}, lines.slice(start + 1, end).join("\n"))));
  return end + 1;
}

function quote(lines, start, into, depth) {
  let end = start;
  while (end < lines.length && QUOTE.test(lines[end])) end += 1;
  const element = make("blockquote");
  blocks(lines.slice(start, end).map((line) => line.replace(QUOTE, "")), element, depth + 1);
  into.append(element);
  return end;
}

function list(lines, start, into, depth) {
  const first = ITEM.exec(lines[start]);
  const indent = first[1].length;
  const ordered = /\d/.test(first[2]);
  const element = make(ordered ? "ol" : "ul", ordered ? { start: parseInt(first[2], 10) } : {});
  let at = start;
  while (at < lines.length) {
    const item = ITEM.exec(lines[at]);
    if (!item || item[1].length !== indent || /\d/.test(item[2]) !== ordered || RULE.test(lines[at])) break;
    const inner = [item[3]];
    at += 1;
    while (at < lines.length && belongs(lines, at, indent)) {
      inner.push(lines[at].slice(Math.min(indent + 2, lines[at].search(/\S|$/))));
      at += 1;
    }
    const child = make("li");
    if (inner.every((line, index) => index === 0 || !line.trim())) child.append(inline(inner[0]));
    else blocks(inner, child, depth + 1);
    element.append(child);
  }
  into.append(element);
  return at;
}

function belongs(lines, at, indent) {
  if (lines[at].trim()) {
    const own = lines[at].search(/\S/);
    return own > indent || (own > 0 && own === indent && !ITEM.test(lines[at]));
  }
  const next = lines[at + 1];
  return next !== undefined && next.trim() !== "" && (next.search(/\S/) > indent || isNextItem(next, indent));
}

function isNextItem(line, indent) {
  const item = ITEM.exec(line);
  return item !== null && item[1].length === indent;
}

function table(lines, start, into) {
  const head = make("tr", {}, ...cells(lines[start]).map((cell) => make("th", { scope: "col" }, inline(cell))));
  const body = make("tbody");
  let at = start + 2;
  while (at < lines.length && lines[at].includes("|") && lines[at].trim()) {
    body.append(make("tr", {}, ...cells(lines[at]).map((cell) => make("td", {}, inline(cell)))));
    at += 1;
  }
  into.append(make("div", { class: "scroll", tabindex: "0" }, make("table", {}, make("thead", {}, head), body)));
  return at;
}

function cells(line) {
  return line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((cell) => cell.trim());
}

function paragraph(lines, start, into) {
  let end = start + 1;
  while (end < lines.length && lines[end].trim() && ![FENCE, HEADING, RULE, QUOTE, ITEM].some((mark) => mark.test(lines[end]))) end += 1;
  const element = make("p");
  lines.slice(start, end).forEach((line, index) => {
    if (index) element.append(lines[start + index - 1].endsWith("  ") ? make("br") : "\n");
    element.append(inline(line.trim()));
  });
  into.append(element);
  return end;
}

function inline(source, depth = 0) {
  const fragment = document.createDocumentFragment();
  let rest = source;
  let found;
  while (rest && depth < DEPTH && (found = INLINE.exec(rest))) {
    if (found.index) fragment.append(rest.slice(0, found.index));
    fragment.append(piece(found, depth));
    rest = rest.slice(found.index + found[0].length);
  }
  if (rest) fragment.append(rest);
  return fragment;
}

function piece(found, depth) {
  const [all, , code, strong, strong2, em, em2, struck, label, target, bare, escaped] = found;
  const within = (content) => inline(content, depth + 1);
  if (code !== undefined) return make("code", {}, code.trim() || code);
  if (strong !== undefined || strong2 !== undefined) return make("strong", {}, within(strong ?? strong2));
  if (em !== undefined || em2 !== undefined) return make("em", {}, within(em ?? em2));
  if (struck !== undefined) return make("s", {}, within(struck));
  if (label !== undefined) return link(target, within(label)) ?? all;
  if (bare !== undefined) return link(bare, bare) ?? all;
  return escaped ?? make("br");
}

function link(target, content) {
  if (!/^https?:\/\//i.test(target)) return null;
  return make("a", { href: target, target: "_blank", rel: "noopener noreferrer nofollow" }, content);
}
