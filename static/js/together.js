/* The button that reviews selected rows together: shown once something is selected, and says how many. */
import { announce } from "./announce.js";

function picked() {
  return document.querySelectorAll("[data-together-id]:checked").length;
}

function show() {
  const form = document.querySelector("[data-together]");
  if (!form) return;
  const number = picked();
  form.hidden = number === 0;
  const label = form.querySelector("[data-together-label]");
  const text = form.dataset.words.replace("{n}", number);
  if (label.textContent === text) return;
  label.textContent = text;
  if (number) announce(text);
}

export function start() {
  show();
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-together-id]")) show();
  });
  // Rows that came anew keep no selection.
  document.addEventListener("htmx:afterSettle", show);
}
