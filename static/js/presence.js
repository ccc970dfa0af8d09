/* Who else has a request before them: said over the inbox's socket every ten seconds, shown on rows and on the request. */
import { announce } from "./announce.js";
import { word } from "./words.js";

const PING_MS = 10_000;
const IDLE_MS = 10 * 60_000;
const ORDER = ["editing", "viewing", "idle"];
let movedAt = Date.now();
let looking = [];
let say = () => {};
let said = "";

function modeOf(detail) {
  if (Date.now() - movedAt >= IDLE_MS) return "idle";
  return detail?.querySelector(".decide-choice--edit[open]") ? "editing" : "viewing";
}

/** Tells the server what this page shows: a request, being edited, looked at or left alone; nothing while it is hidden. */
export function sayWhere(always = false) {
  const detail = document.querySelector("#detail[data-is-open]");
  const id = detail && !document.hidden ? detail.dataset.interrupt : "";
  const mode = modeOf(detail);
  const now = id ? `${id} ${mode}` : "";
  if (now === said && !(always && id)) return;
  said = now;
  say({ type: "looking", id, mode });
}

function sentence(id) {
  const here = looking.filter((one) => one.id === id);
  if (here.length === 0) return "";
  const first = here.reduce((a, b) => (ORDER.indexOf(b.mode) < ORDER.indexOf(a.mode) ? b : a));
  return here.length === 1 ? word(first.mode, { who: first.who }) : word("others", { who: first.who, n: here.length - 1 });
}

function paint() {
  for (const place of document.querySelectorAll("[data-interrupt-id] [data-presence]")) {
    put(place, sentence(place.closest("[data-interrupt-id]").dataset.interruptId));
  }
  const banner = document.querySelector("[data-presence-here]");
  if (!banner) return;
  const text = sentence(banner.closest("[data-interrupt]").dataset.interrupt);
  banner.hidden = !text;
  const spoken = banner.querySelector("strong");
  if (put(spoken, text) && text) announce(text);
}

function put(node, text) {
  if (node.textContent === text) return false;
  node.textContent = text;
  return true;
}

export function showOthers(people) {
  looking = Array.isArray(people) ? people : [];
  paint();
}

function moved() {
  const wasIdle = Date.now() - movedAt >= IDLE_MS;
  movedAt = Date.now();
  if (wasIdle) sayWhere();
}

export function startPresence(send) {
  say = send;
  for (const kind of ["pointerdown", "pointermove", "keydown", "scroll"]) {
    document.addEventListener(kind, moved, { capture: true, passive: true });
  }
  setInterval(() => sayWhere(true), PING_MS);
  document.addEventListener("visibilitychange", () => sayWhere());
  document.addEventListener("toggle", () => sayWhere(), true);
  document.addEventListener("htmx:afterSettle", () => {
    sayWhere();
    paint();
  });
}
