/* Rows of the inbox: a row that is decided becomes a receipt, and one that is opened shows its request beside the list. */
import { swapFragment } from "./fragments.js";
import { tick } from "./time.js";
import { word } from "./words.js";

const wide = window.matchMedia("(min-width: 56.01rem)");

/** Marks the rows that do not wait any more, and asks for them as they are now; nothing is moved. */
export function markGone(rows, open) {
  for (const row of rows) {
    const gone = !open.has(row.dataset.interruptId);
    if (gone === (row.dataset.gone !== undefined)) continue;
    if (gone) row.dataset.gone = "";
    else delete row.dataset.gone;
    const note = row.querySelector("[data-gone-note]");
    if (note) note.textContent = gone ? word("row_gone") : "";
    if (row.dataset.rowUrl) renew(row);
  }
}

/* What cannot be fetched keeps its mark; the next reload of the list says the rest. */
async function renew(row) {
  const answer = await fetch(row.dataset.rowUrl, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!answer?.ok || answer.redirected || !row.isConnected) return;
  const current = row.getAttribute("aria-current");
  if (swapFragment(row.id, await answer.text()) !== "done") return;
  if (current) document.getElementById(row.id)?.setAttribute("aria-current", current);
  tick();
}

/* On a wide screen list and request share the page, so the list and its receipts stay where they are. */
function open(event) {
  const link = event.target.closest?.("[data-inbox-rows] [data-key-open]");
  const modified = event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
  if (!link || modified || !wide.matches || !window.htmx || !document.getElementById("detail")) return;
  event.preventDefault();
  const address = link.getAttribute("href");
  document.getElementById("detail").setAttribute("aria-busy", "true");
  window.htmx
    .ajax("GET", address, { source: link, target: "#detail", swap: "outerHTML" })
    .finally(() => opened(link.closest("[data-key-row]"), address));
}

function opened(row, address) {
  const detail = document.getElementById("detail");
  detail?.removeAttribute("aria-busy");
  if (detail?.dataset.interrupt !== row.dataset.interruptId) return;
  for (const one of document.querySelectorAll("[data-key-row][aria-current]")) one.removeAttribute("aria-current");
  document.getElementById(row.id)?.setAttribute("aria-current", "true");
  if (location.pathname + location.search !== address) history.pushState({ inbox: true }, "", address);
  const count = document.title.match(/^\(\d+\) /)?.[0] ?? "";
  document.title = count + detail.dataset.pageTitle;
}

export function start() {
  document.addEventListener("click", open);
  // Going back shows what the address says; the page that was there is not kept.
  window.addEventListener("popstate", () => document.querySelector("[data-inbox-rows]") && location.reload());
}
