/* After htmx swapped something: focus goes to its [data-focus]; a request that never arrived is said inline. */
import { alarm } from "./announce.js";
import { word } from "./words.js";

/** Moves focus to the first [data-focus] in `root`, if there is one. */
export function focusIn(root) {
  const target = root?.matches?.("[data-focus]") ? root : root?.querySelector?.("[data-focus]");
  target?.focus();
}

function showFailure() {
  const place = document.getElementById("page-errors");
  const banner = document.createElement("div");
  banner.className = "banner";
  banner.dataset.tone = "bad";
  banner.textContent = word("request_failed");
  place?.replaceChildren(banner);
  alarm(word("request_failed"));
}

export function start() {
  document.addEventListener("htmx:afterSettle", (event) => focusIn(event.detail.elt));
  document.addEventListener("htmx:sendError", showFailure);
  document.addEventListener("htmx:timeout", showFailure);
  document.addEventListener("htmx:beforeRequest", () => document.getElementById("page-errors")?.replaceChildren());
  focusIn(document);
}
