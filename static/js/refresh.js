/* Reads regions anew that say so, every two seconds, while somebody can see them. */
const EVERY_MS = 2000;

function refresh() {
  if (document.hidden) return;
  for (const region of document.querySelectorAll("[data-refresh]")) {
    // Not under the hands of somebody who is in it.
    if (!region.contains(document.activeElement)) window.htmx.trigger(region, "refresh");
  }
}

export function start() {
  setInterval(refresh, EVERY_MS);
}
