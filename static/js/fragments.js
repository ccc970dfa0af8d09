/* Swaps a server-rendered region by id and keeps what the reader was doing in it: focus, open details, scroll. */

/** Replaces #`target` with `html`: "done", "missing", or "busy" while a dialog is open or a field is being typed in. */
export function swapFragment(target, html) {
  const old = document.getElementById(target);
  if (!old) return "missing";
  if (isInUse(old)) return "busy";
  const template = document.createElement("template");
  template.innerHTML = html;
  const fresh = template.content.firstElementChild;
  if (!fresh) return "missing";
  const kept = remember(old);
  if (fresh.id === target) old.replaceWith(fresh);
  else old.replaceChildren(template.content);
  const now = document.getElementById(target);
  restore(now, kept);
  window.htmx?.process(now);
  return "done";
}

function isInUse(region) {
  if (region.querySelector("dialog[open]")) return true;
  const active = document.activeElement;
  return region.contains(active) && active.matches("input:not([type=checkbox], [type=radio]), textarea, select");
}

function remember(region) {
  const active = region.contains(document.activeElement) ? document.activeElement : null;
  return {
    focus: active && pathTo(region, active),
    open: [...region.querySelectorAll("details[open]")].map((node) => pathTo(region, node)),
    closed: [...region.querySelectorAll("details:not([open])")].map((node) => pathTo(region, node)),
    checked: [...region.querySelectorAll("input[type=checkbox][id]")].map((node) => [node.id, node.checked]),
    scroll: [...region.querySelectorAll("[id]")].filter((node) => node.scrollTop).map((node) => [node.id, node.scrollTop]),
  };
}

function restore(region, kept) {
  for (const path of kept.open) find(region, path)?.setAttribute("open", "");
  for (const path of kept.closed) find(region, path)?.removeAttribute("open");
  for (const [id, checked] of kept.checked) {
    const box = document.getElementById(id);
    if (box) box.checked = checked;
  }
  for (const [id, top] of kept.scroll) {
    const node = document.getElementById(id);
    if (node) node.scrollTop = top;
  }
  if (kept.focus) find(region, kept.focus)?.focus({ preventScroll: true });
}

/* An id is the best address; without one, tag and position among the region's elements of that tag. */
function pathTo(region, node) {
  if (node.id) return { id: node.id };
  return { tag: node.localName, index: [...region.getElementsByTagName(node.localName)].indexOf(node) };
}

function find(region, path) {
  const node = path.id ? document.getElementById(path.id) : region.getElementsByTagName(path.tag)[path.index];
  return node && region.contains(node) ? node : null;
}
