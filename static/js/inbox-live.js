/* The inbox socket of every page: count in title and navigation; on the inbox itself, news without moving rows. */
import { announce } from "./announce.js";
import { hideOffline, showDot, showEnded, showOffline } from "./connection.js";
import { markGone } from "./inbox-rows.js";
import { sayWhere, showOthers, startPresence } from "./presence.js";
import { LiveSocket } from "./socket.js";
import { setServerTime } from "./time.js";
import { word } from "./words.js";

let known = null;

function showCount(open) {
  document.title = (open ? `(${open}) ` : "") + document.title.replace(/^\(\d+\) /, "");
  for (const badge of document.querySelectorAll("[data-inbox-count]")) {
    badge.textContent = String(open);
    badge.hidden = open === 0;
  }
  if (known !== null && open > known) announce(word(open === 1 ? "inbox_one" : "inbox", { n: open }));
  known = open;
}

const rowsOf = (list) => [...list.querySelectorAll("[data-interrupt-id]")];

/* The list says where it comes from; the answer replaces the whole list. */
function refetch(list) {
  if (!window.htmx || list.dataset.loading !== undefined) return;
  list.dataset.loading = "";
  window.htmx
    .ajax("GET", list.dataset.refreshUrl || location.href, { source: list, target: list, swap: "outerHTML", select: `#${list.id}` })
    .finally(() => delete list.dataset.loading);
}

/* The tabs' counts are the server's to know; asked for again only when the number of open requests moved. */
function refreshTabs() {
  const tabs = document.querySelector("[data-inbox-tabs]");
  if (!tabs || !window.htmx || tabs.contains(document.activeElement)) return;
  window.htmx.ajax("GET", tabs.dataset.inboxTabs, { source: tabs, target: tabs, swap: "innerHTML", select: "[data-inbox-tabs] > a" });
}

function updateList(list, open, ids) {
  const rows = rowsOf(list);
  const shown = new Set(rows.map((row) => row.dataset.interruptId));
  const fresh = ids.filter((id) => !shown.has(String(id)));
  if (rows.length === 0 && fresh.length) return refetch(list);
  if (ids.length === open) markGone(rows, new Set(ids.map(String)));
  const bar = list.querySelector("[data-inbox-new]") ?? document.querySelector("[data-inbox-new]");
  const button = bar?.querySelector("button");
  if (!button) return undefined;
  bar.hidden = fresh.length === 0;
  button.textContent = word("new_rows", { n: fresh.length });
  return undefined;
}

function receive(frame) {
  if (frame.type === "hello") {
    setServerTime(frame.server_time);
    sayWhere(true);
  }
  if (frame.type === "presence") showOthers(frame.looking);
  if (frame.type !== "inbox") return false;
  const ids = Array.isArray(frame.ids) ? frame.ids : [];
  const open = Number(frame.open) || 0;
  const moved = known !== null && open !== known;
  showCount(open);
  if (moved) refreshTabs();
  const list = document.querySelector("[data-inbox-list]");
  if (list) updateList(list, open, ids);
  document.body.dispatchEvent(new CustomEvent("inbox:changed", { detail: { open, ids } }));
  return true;
}

/* A page with a run socket of its own reports that one; this one then stays quiet. */
function connection(state, detail, socket) {
  if (document.querySelector("[data-live-run]")) return;
  if (state === "live") {
    showDot("live");
    hideOffline();
  } else if (state === "offline") {
    if (!document.querySelector("[data-inbox-list]")) return showDot("offline");
    showOffline({ title: () => word("reconnecting_inbox"), attempt: detail.attempt, retry: () => socket.retryNow() });
  } else if (state === "signed_out") showEnded(state);
  return undefined;
}

export function start() {
  if (document.body.dataset.signedIn === undefined) return;
  const socket = new LiveSocket({
    address: () => "/ws/inbox/",
    onFrame: receive,
    onState: (state, detail) => connection(state, detail, socket),
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-inbox-new] button")) return;
    const list = document.querySelector("[data-inbox-list]");
    if (list) refetch(list);
  });
  startPresence((message) => socket.say(message));
  socket.open();
}
