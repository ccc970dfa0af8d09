/* Single-letter keys. Rows and decisions answer only while the list or the request has focus; all can be switched off. */
import { announce } from "./announce.js";
import { choose, chosen } from "./choices.js";
import { openDialog } from "./dialogs.js";
import { word } from "./words.js";

const PLACES = { h: "/", i: "/inbox/", r: "/runs/", t: "/traces/" };
const GO_MS = 1500;
let goUntil = 0;

/** False where somebody has switched single-letter keys off. */
export const switchedOn = () => chosen("keys") !== "off";

function isTyping(target) {
  return target.isContentEditable || target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select");
}

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (!switchedOn() || isTyping(event.target) || document.querySelector("dialog[open]")) return;
  if (anywhere(event.key) || inList(event) || inDetail(event)) event.preventDefault();
}

/* These move nothing and decide nothing, so they need no focus. */
function anywhere(key) {
  if (performance.now() < goUntil && PLACES[key]) {
    goUntil = 0;
    location.assign(PLACES[key]);
    return true;
  }
  goUntil = key === "g" ? performance.now() + GO_MS : 0;
  if (key === "?") return openDialog("keys-dialog");
  if (key === "/") return focus(document.querySelector("[data-key-filter]"));
  if (key === "l") return click(document.querySelector("[data-jump-latest]"));
  return false;
}

function inList(event) {
  const list = event.target.closest?.("[data-key-list]");
  if (!list) return false;
  const step = { j: 1, k: -1 }[event.key];
  if (step) return move(list, step);
  const row = event.target.closest("[data-key-row]");
  if (event.key === "x") return click(row?.querySelector("input[type=checkbox]"));
  // From the list, a letter goes to the request that is open beside it.
  const detail = document.querySelector("[data-key-detail]");
  return detail ? act(detail, event.key) : false;
}

function move(list, step) {
  const rows = [...list.querySelectorAll("[data-key-row]")];
  const focused = document.activeElement.closest("[data-key-row]");
  const here = rows.indexOf(focused ?? list.querySelector("[data-key-row][aria-current]"));
  const row = rows[here < 0 ? 0 : Math.min(rows.length - 1, Math.max(0, here + step))];
  return focus(row?.querySelector("[data-key-open]") ?? row);
}

function inDetail(event) {
  const detail = event.target.closest?.("[data-key-detail]");
  if (!detail) return false;
  const list = document.querySelector("[data-key-list]");
  const step = { j: 1, k: -1, u: 0 }[event.key];
  // On a narrow screen there is no list beside the request: `u` is the link back then.
  if (step !== undefined && list?.checkVisibility()) return move(list, step);
  return act(detail, event.key);
}

function act(detail, key) {
  if (key === "a") return approve(detail);
  const control = detail.querySelector(`[data-key="${CSS.escape(key)}"]`) ?? (key === "u" && document.querySelector('[data-key="u"]'));
  if (!control) return false;
  if (control.dataset.keyFocus) return focus(document.querySelector(control.dataset.keyFocus));
  return click(control);
}

/* The higher the risk, the further a key stays from the deed. */
function approve(detail) {
  const button = detail.querySelector('[data-key="a"]');
  if (!button) return false;
  const risk = detail.dataset.risk;
  if (risk === "critical") return focus(detail.querySelector("[data-confirm-text]") ?? button);
  if (risk !== "low" && risk !== "medium") return focus(button);
  const payload = detail.querySelector("[data-payload]");
  if (payload && !hasBeenRead(payload, detail)) {
    announce(word("read_first"));
    return true;
  }
  return click(button);
}

/* True if the payload is wholly in view, or was paged through to its end; else scrolls one page on. */
function hasBeenRead(payload, detail) {
  const top = document.querySelector(".topbar")?.offsetHeight ?? 0;
  const bottom = window.innerHeight - (detail.querySelector(".action-bar")?.offsetHeight ?? 0);
  const box = payload.getBoundingClientRect();
  const endInView = box.bottom <= bottom + 1;
  if (endInView && (box.top >= top - 1 || payload.dataset.pagedTo !== undefined)) return true;
  if (payload.dataset.pagedTo === undefined) window.scrollBy(0, box.top - top - 8);
  else window.scrollBy(0, Math.min(bottom - top - 40, box.bottom - bottom + 8));
  payload.dataset.pagedTo = "";
  return false;
}

function focus(node) {
  node?.focus();
  return Boolean(node);
}

function click(node) {
  if (!node || node.hidden || node.disabled || node.getAttribute("aria-disabled") === "true") return false;
  node.click();
  return true;
}

export function start() {
  document.addEventListener("keydown", onKey);
  const toggle = document.querySelector("[data-keys-toggle]");
  if (!toggle) return;
  toggle.checked = switchedOn();
  toggle.addEventListener("change", () => choose("keys", toggle.checked ? "on" : "off"));
}
