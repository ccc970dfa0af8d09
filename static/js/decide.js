/* Opening "Edit", "Answer", "Reject" or "Snooze" puts the focus where the typing starts. */
export function start() {
  document.addEventListener("click", (event) => {
    const choice = event.target.closest?.(".decide-choice > summary, [data-opens] > summary")?.parentElement;
    if (!choice) return;
    // The browser opens it after the click.
    setTimeout(() => {
      if (choice.open) choice.querySelector("input:not([type=hidden]), textarea, select, button[name]")?.focus();
    });
  });
}
