"use strict";
// Everything here came from outside. It is shown with `textContent` and `append` alone, never as markup.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const [timeline, detail, search, found] = ["timeline", "detail", "search", "found"].map(byId);

// ---- Making elements ----

/** Makes an element; properties that begin with `--` are variables of its style. */
function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else if (name === "width" || name === "left") element.style[name] = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((it) => it !== null && it !== undefined && it !== false && it !== ""));
  return element;
}

const list = (value) => (Array.isArray(value) ? value : []);
const text = (value) => (value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2));
const oneLine = (value, most = 160) => { const it = text(value).slice(0, most * 4).replace(/\s+/g, " ").trim(); return it.length > most ? it.slice(0, most) + "…" : it; };
const number = (value) => Number(value || 0).toLocaleString("en-US");
const counted = (many, what) => [many, many === 1 ? what : `${what}s`];
const count = (many, what) => `${number(many)} ${what}${many === 1 ? "" : "s"}`;
const percent = (part, all) => { const it = (part * 100) / Math.max(all, 1); return it > 0 && it < 0.1 ? "< 0.1 %" : `${it.toFixed(it < 10 ? 1 : 0)} %`; };
const money = (value) => `${Number(value).toFixed(value < 0.1 ? 4 : 2)}`;

function duration(ms) {
  if (!Number.isFinite(ms)) return "";
  if (ms < 1) return `${Math.round(ms * 1000)} µs`;
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

/** A text that may be JSON, made readable. */
function readable(value) {
  if (typeof value !== "string") return text(value);
  try { const json = JSON.parse(value); return typeof json === "object" && json ? JSON.stringify(json, null, 2) : value; } catch { return value; }
}

const block = (name, value) => h("div", { class: "block" }, h("span", {}, name), h("pre", { tabindex: "0" }, readable(value)));
const card = (title, aside, ...children) => h("section", { class: "card" }, h("h3", {}, title, aside && h("small", {}, aside)), ...children);
const badge = (word, kind = "") => h("span", { class: `badge ${kind}` }, word);

function table(heads, rows) {
  const cell = (tag, value, head) => h(tag, { class: head.class }, value);
  return h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, heads.map((it) => cell("th", it.name, it)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((it, at) => cell("td", it, heads[at])))))));
}

/** Facts in a row: a value and its name; one that is `quiet` matters less. */
const facts = (...pairs) => h("p", { class: "facts" }, pairs.filter(Boolean).map(([value, name, kind]) => kind === "quiet" ? h("span", { class: "quiet" }, `${name} ${value}`) : h("span", {}, h("b", {}, value), ` ${name}`)));

/** A day and a time, as everybody reads it. */
function moment(at) {
  const it = new Date(at), two = (value) => String(value).padStart(2, "0");
  return Number.isNaN(it.getTime()) ? "" : `${it.getFullYear()}-${two(it.getMonth() + 1)}-${two(it.getDate())} ${two(it.getHours())}:${two(it.getMinutes())}:${two(it.getSeconds())}`;
}

// ---- Markdown ----

/** Longer paragraphs are shown as they are, so that no text can keep the page busy. */
const LONGEST = 4000;

/** The elements of a paragraph. A link is shown with its address, and leads nowhere. */
function inline(value, depth = 0) {
  if (value.length > LONGEST || depth > 3) return [value];
  const pattern = /(`+)([^`]+)\1(?!`)|\*\*([^*\s](?:[^*]*[^*\s])?)\*\*|(?<![\w*])\*([^*\s](?:[^*]*[^*\s])?)\*(?![\w*])|(?<![\w_])_([^_\s](?:[^_]*[^_\s])?)_(?![\w_])|\[([^\]\n]+)\]\(((?:[^()\s]|\([^()\s]*\))+)\)/g;
  const out = [];
  let last = 0;
  for (const it of value.matchAll(pattern)) {
    out.push(value.slice(last, it.index));
    const [whole, , code, bold, star, line, label, address] = it;
    if (code !== undefined) out.push(h("code", {}, code));
    else if (bold !== undefined) out.push(h("strong", {}, inline(bold, depth + 1)));
    else if (star !== undefined || line !== undefined) out.push(h("em", {}, inline(star ?? line, depth + 1)));
    else out.push(inline(label, depth + 1), h("span", { class: "quiet" }, ` (${address})`));
    last = it.index + whole.length;
  }
  out.push(value.slice(last));
  return out;
}

/** A text as Markdown: headings, lists, quotes, code and emphasis, made of elements alone. */
function markdown(value) {
  const lines = text(value).split(/\r?\n/), out = [];
  const isBlock = (line) => /^\s*(```|~~~|#{1,6}\s|[-*+]\s|\d{1,9}[.)]\s|>)/.test(line) || line.trim() === "";
  for (let at = 0; at < lines.length;) {
    const line = lines[at];
    const fence = line.match(/^\s*(```+|~~~+)/);
    const heading = line.match(/^(#{1,6})\s+(.*)$/);
    const item = line.match(/^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/);
    if (fence) {
      let end = at + 1;
      while (end < lines.length && !lines[end].trim().startsWith(fence[1])) end++;
      out.push(h("pre", { tabindex: "0" }, lines.slice(at + 1, end).join("\n")));
      at = end + 1;
    } else if (heading) {
      out.push(h("p", { class: "heading" }, inline(heading[2])));
      at++;
    } else if (item) {
      const mark = /\d/.test(item[2]) ? item[2] : "•";
      out.push(h("p", { class: "item", "--indent": Math.min(Math.floor(item[1].length / 2), 6) }, h("span", { class: "mark" }, mark), h("span", {}, inline(item[3]))));
      at++;
    } else if (/^\s*>/.test(line)) {
      out.push(h("p", { class: "quote" }, inline(line.replace(/^\s*>\s?/, ""))));
      at++;
    } else if (line.trim() === "") {
      at++;
    } else {
      let end = at + 1;
      while (end < lines.length && !isBlock(lines[end])) end++;
      out.push(h("p", {}, inline(lines.slice(at, end).join("\n"))));
      at = end;
    }
  }
  return h("div", { class: "prose markdown" }, out);
}

// ---- The rows of the list ----

const rows = [];

/** Adds a row: its label, a bar, and a word at its end; `show` makes its details, `words` what is searched. */
function addRow(row) {
  row.at = rows.length;
  row.element = h("div", {
    class: `row ${row.kind}${row.failed ? " failed" : ""}`, role: "treeitem", id: `row-${row.at}`, tabindex: "-1",
    "aria-level": row.level, "aria-selected": "false", "--indent": row.level - 1, onclick: () => select(row.at, true),
  },
    h("span", { class: "label", title: row.title || [row.label, row.aside].filter(Boolean).map(text).join(" ") }, row.label, row.aside && h("span", { class: "aside" }, " ", row.aside)),
    row.bar && h("span", { class: "track", "aria-hidden": "true" }, h("i", { left: `${row.bar[0]}%`, width: `${row.bar[1]}%` })),
    h("span", { class: "time" }, row.time),
    row.below);
  rows.push(row);
  timeline.append(row.element);
  return row;
}

// ---- Selecting and searching ----

let selected = -1;
let query = "";
const isShown = (row) => !row.element.classList.contains("away");

function select(at, takesFocus) {
  const row = rows[at];
  if (!row) return;
  if (rows[selected]) { rows[selected].element.setAttribute("aria-selected", "false"); rows[selected].element.tabIndex = -1; }
  selected = at;
  row.element.setAttribute("aria-selected", "true");
  row.element.tabIndex = 0;
  if (takesFocus) row.element.focus({ preventScroll: true });
  row.element.scrollIntoView({ block: "nearest" });
  detail.replaceChildren(...[row.show()].flat(Infinity).filter(Boolean));
  detail.scrollTop = 0;
  history.replaceState(null, "", `#${at + 1}`);
  highlight();
}

function move(by, from = selected) {
  for (let at = from + by; at >= 0 && at < rows.length; at += by) if (isShown(rows[at])) return select(at, true);
}

const hay = (row) => (row.hay ??= JSON.stringify(row.words()).toLowerCase());

/** The query as it stands within JSON, so that what has to be escaped there is found as well. */
const needle = () => JSON.stringify(query).slice(1, -1).toLowerCase();

function seek() {
  query = search.value.trim();
  for (const row of rows) {
    row.hit = query !== "" && hay(row).includes(needle());
    row.element.classList.toggle("away", query !== "" && !row.hit);
  }
  // What a hit is part of stays in sight.
  for (const row of rows) if (row.hit) for (let it = row.parent; it; it = it.parent) it.element.classList.remove("away");
  const hits = rows.filter((it) => it.hit);
  found.textContent = query === "" ? "" : hits.length ? `${count(hits.length, "hit")}` : "Nothing found";
  if (hits.length && !rows[selected]?.hit) select(hits[0].at, false);
  else highlight();
  // What is hit only in what no detail shows gives way to what can be seen.
  for (const it of hits.slice(0, 50)) {
    if (detail.querySelector("mark")) break;
    select(it.at, false);
  }
}

/** Marks what was searched for in the details, and opens what hides it. */
function highlight() {
  for (const mark of detail.querySelectorAll("mark")) { const parent = mark.parentNode; mark.replaceWith(mark.textContent); parent.normalize(); }
  if (query === "") return;
  const walker = document.createTreeWalker(detail, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) nodes.push(walker.currentNode);
  const lower = query.toLowerCase();
  let marks = 0;
  for (const node of nodes) {
    let rest = node;
    for (let at; marks < 2000 && (at = rest.data.toLowerCase().indexOf(lower)) >= 0; marks++) {
      const hit = rest.splitText(at);
      rest = hit.splitText(Math.min(query.length, hit.length));
      const mark = h("mark", {});
      hit.replaceWith(mark);
      mark.append(hit);
      mark.closest("details")?.setAttribute("open", "");
    }
  }
  detail.querySelector("mark")?.scrollIntoView({ block: "nearest" });
}

// ---- Keys ----

function toggleTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
}

function endSearch() {
  search.value = "";
  seek();
  rows[selected]?.element.focus();
}

const hit = (by) => { for (let at = selected + by; at >= 0 && at < rows.length; at += by) if (rows[at].hit) return select(at, true); };

const KEYS = {
  "j": () => move(1), "k": () => move(-1), "ArrowDown": () => move(1), "ArrowUp": () => move(-1),
  "Home": () => move(1, -1), "End": () => move(-1, rows.length),
  "ArrowRight": () => detail.focus(), "Enter": () => detail.focus(), "ArrowLeft": () => rows[selected]?.parent && select(rows[selected].parent.at, true),
  "n": () => hit(1), "N": () => hit(-1), "/": () => { search.focus(); search.select(); }, "t": toggleTheme,
  "?": () => byId("keys").showModal(), "Escape": endSearch,
};
/** These keep their meaning in what scrolls or can be pressed. */
const NATIVE = ["ArrowDown", "ArrowUp", "ArrowRight", "Home", "End", "Enter"];

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || byId("keys").open) return;
  const target = event.target;
  if (target === search) {
    if (event.key === "Escape") { event.preventDefault(); endSearch(); }
    else if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); rows[selected]?.element.focus(); }
    return;
  }
  const key = KEYS[event.key];
  const isInside = detail.contains(target) || target instanceof HTMLButtonElement;
  if (!key || (isInside && NATIVE.includes(event.key))) return;
  event.preventDefault();
  if (event.key === "ArrowLeft" && detail.contains(target)) rows[selected]?.element.focus();
  else key();
});
search.addEventListener("input", seek);
byId("theme").addEventListener("click", toggleTheme);
byId("help").addEventListener("click", () => byId("keys").showModal());

// ---- Beginning ----

/** Goes to the next row that failed; behind the last one, to the first. */
function nextFailed() {
  const failed = rows.filter((it) => it.failed && !rows.some((below) => below.parent === it && below.failed));
  const next = failed.find((it) => it.at > selected) ?? failed[0];
  if (next) select(next.at, true);
}

/** Shows what all of it is: a title, totals (value, name, kind, what a click does), and notices; then the row that the address names. */
function begin(title, totals, notices, empty) {
  byId("title").textContent = title;
  byId("totals").append(...totals.filter(Boolean).map(([value, name, kind, action]) => h("div", { class: kind }, h("dt", {}, name),
    h("dd", {}, action ? h("button", { type: "button", class: "jump", title: `Go to the next of ${text(value)} ${name}`, onclick: action }, text(value)) : text(value)))));
  byId("notices").append(...notices.filter(Boolean).map((it) => h("p", {}, it)));
  if (!rows.length) detail.append(h("p", { class: "quiet" }, empty));
  select(Math.min(Math.max((parseInt(location.hash.slice(1), 10) || 1) - 1, 0), rows.length - 1), true);
}
