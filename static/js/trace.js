/* The tree of a trace: folding, its keys, and the span beside it. Without JavaScript all is open and links open spans. */
import { swapFragment } from "./fragments.js";
import { switchedOn } from "./keys.js";

const folded = new Set();
const narrow = window.matchMedia("(max-width: 56rem)");

function rowsOf(tree) {
  return [...tree.querySelectorAll(":scope > li")];
}

function level(row) {
  return Number(row.dataset.level);
}

/* Shows what is below no folded row, in one pass: rows stand in the order of the tree. */
function draw(tree) {
  let hiddenBelow = Infinity;
  for (const row of rowsOf(tree)) {
    const isHidden = level(row) > hiddenBelow;
    row.hidden = isHidden;
    if (isHidden) continue;
    const isFolded = folded.has(row.dataset.span);
    row.querySelector(".twist")?.setAttribute("aria-expanded", String(!isFolded));
    hiddenBelow = isFolded ? level(row) : Infinity;
  }
}

function setFolded(row, wanted) {
  if (!row.querySelector(".twist") || folded.has(row.dataset.span) === wanted) return false;
  if (wanted) folded.add(row.dataset.span);
  else folded.delete(row.dataset.span);
  draw(row.parentElement);
  return true;
}

/* Rows of this level and above stay open; "all": every row. */
function openTo(tree, deepest) {
  folded.clear();
  for (const row of rowsOf(tree)) {
    if (row.querySelector(".twist") && level(row) >= deepest) folded.add(row.dataset.span);
  }
  draw(tree);
  const here = document.activeElement?.closest("[data-trace-tree] > li");
  if (here?.hidden) focusRow(visibleBefore(here));
}

function visibleBefore(row) {
  let at = row;
  while (at?.hidden) at = at.previousElementSibling;
  return at;
}

function focusRow(row) {
  const target = row?.querySelector("[data-key-open]");
  target?.focus();
  return Boolean(target);
}

function neighbour(row, step) {
  let at = row;
  do at = step > 0 ? at.nextElementSibling : at.previousElementSibling;
  while (at && (at.hidden || !at.querySelector("[data-key-open]")));
  return at;
}

function parentOf(row) {
  let at = row.previousElementSibling;
  while (at && level(at) >= level(row)) at = at.previousElementSibling;
  return at;
}

function press(key, row) {
  const tree = row.parentElement;
  if (key === "ArrowDown") return focusRow(neighbour(row, 1));
  if (key === "ArrowUp") return focusRow(neighbour(row, -1));
  if (key === "ArrowRight") return setFolded(row, false) || focusRow(neighbour(row, 1));
  if (key === "ArrowLeft") return setFolded(row, true) || focusRow(parentOf(row));
  if (!switchedOn()) return false;
  if (key === "e") return openTo(tree, Infinity), true;
  if (key === "w") return openTo(tree, 0), true;
  if (/^[0-9]$/.test(key)) return openTo(tree, Number(key)), true;
  if (key === "f") return document.querySelector("[data-trace-errors]")?.click(), true;
  return false;
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
  const row = event.target.closest?.("[data-trace-tree] > li");
  if (!row || !press(event.key, row)) return;
  event.preventDefault();
  event.stopPropagation();
}

/* The span beside the tree, at its own address; the page itself where that fails or there is no room beside it. */
async function peek(link) {
  try {
    const answer = await fetch(link.dataset.peek, { headers: { "HX-Request": "true" } });
    if (!answer.ok || answer.redirected || swapFragment("span", await answer.text()) !== "done") throw new Error();
    for (const row of document.querySelectorAll("#span-tree [aria-current]")) row.removeAttribute("aria-current");
    link.closest("[data-key-row]")?.setAttribute("aria-current", "true");
    history.replaceState(null, "", link.href);
    followHere();
  } catch {
    location.assign(link.href);
  }
}

/* What is read anew while the run goes on keeps the span that is open. */
function followHere() {
  const region = document.querySelector("#trace[hx-get]");
  region?.setAttribute("hx-get", location.search || "?");
}

function onClick(event) {
  if (event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const twist = event.target.closest?.("[data-trace-tree] .twist");
  if (twist) return void setFolded(twist.closest("li"), twist.getAttribute("aria-expanded") === "true");
  const all = event.target.closest?.("[data-trace-level]");
  const tree = document.querySelector("[data-trace-tree]");
  if (all && tree) return openTo(tree, all.dataset.traceLevel === "all" ? Infinity : Number(all.dataset.traceLevel));
  const link = event.target.closest?.("a[data-peek]");
  if (!link || narrow.matches) return;
  event.preventDefault();
  peek(link);
}

export function start() {
  // In the tree its keys come before those of lists.
  document.addEventListener("keydown", onKey, true);
  document.addEventListener("click", onClick);
  document.addEventListener("htmx:afterSettle", () => {
    const tree = document.querySelector("[data-trace-tree]");
    if (tree) draw(tree);
  });
}
