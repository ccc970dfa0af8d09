/* Copy buttons: data-copy holds the text, or data-copy-from names the element that does. */
import { announce } from "./announce.js";
import { word } from "./words.js";

const SHOWN_MS = 1500;

function textOf(button) {
  if (button.dataset.copyFrom) {
    const source = document.querySelector(button.dataset.copyFrom);
    return source ? (source.value ?? source.textContent) : "";
  }
  return button.dataset.copy;
}

async function copy(button) {
  try {
    await navigator.clipboard.writeText(textOf(button));
  } catch {
    announce(word("copy_failed"));
    return;
  }
  button.dataset.done = "";
  announce(word("copied"));
  setTimeout(() => delete button.dataset.done, SHOWN_MS);
}

export function start() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-copy], [data-copy-from]");
    if (button) copy(button);
  });
}
