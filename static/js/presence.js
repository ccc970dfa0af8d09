/* Who else has a request before them: said over the inbox's socket every ten seconds, shown on rows and on the request. */
import { announce } from "./announce.js";
import { word } from "./words.js";

const PING_MS = 10_000;
let looking = [];
let say = () => {};
let said = "";

/** Tells the server what this page shows: a request, being edited or not; nothing while the page is hidden. */
export function sayWhere(always = false) {
  const detail = document.querySelector("#detail[data-is-open]");
  const id = detail && !document.hidden ? detail.dataset.interrupt : "";
  const mode = detail?.querySelector(".decide-choice--edit[open]") ? "editing" : "viewing";
  const now = id ? `${id} ${mode}` : "";
  if (now === said && !(always && id)) return;
  said = now;
  say({ type: "looking", id, mode });
}

function sentence(id) {
  const here = looking.filter((one) => one.id === id);
  if (here.length === 0) return "";
  const first = here.find((one) => one.mode === "editing") ?? here[0];
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

export function startPresence(send) {
  say = send;
  setInterval(() => sayWhere(true), PING_MS);
  document.addEventListener("visibilitychange", () => sayWhere());
  document.addEventListener("toggle", () => sayWhere(), true);
  document.addEventListener("htmx:afterSettle", () => {
    sayWhere();
    paint();
  });
}
