/* Folding rows of a timeline or span tree, and its filters. Without JavaScript everything is simply open. */
function fold(button) {
  const open = button.getAttribute("aria-expanded") !== "true";
  button.setAttribute("aria-expanded", String(open));
  const children = document.getElementById(button.getAttribute("aria-controls"));
  if (children) children.hidden = !open;
}

function filter(box) {
  const target = document.querySelector(box.dataset.filterTarget);
  if (!target) return;
  for (const row of target.querySelectorAll("[data-kind]")) {
    const kinds = row.dataset.kind.split(" ");
    const wanted = [...document.querySelectorAll(`[data-filter-target="${box.dataset.filterTarget}"]`)].every((other) =>
      other.dataset.filterOnly ? !other.checked || kinds.includes(other.dataset.filterOnly) : other.checked || !kinds.includes(other.dataset.filterShow),
    );
    row.hidden = !wanted;
  }
}

function filterAll() {
  for (const box of document.querySelectorAll("[data-filter-target]")) filter(box);
}

export function start() {
  document.addEventListener("click", (event) => {
    const twist = event.target.closest?.("button[aria-expanded][aria-controls][data-fold]");
    if (twist) fold(twist);
    const all = event.target.closest?.("[data-fold-all]");
    if (!all) return;
    const open = all.dataset.foldAll === "open";
    for (const button of document.querySelectorAll("[data-fold]")) {
      if ((button.getAttribute("aria-expanded") === "true") !== open) fold(button);
    }
  });
  document.addEventListener("change", (event) => {
    if (event.target.dataset?.filterTarget) filter(event.target);
  });
  filterAll();
}
