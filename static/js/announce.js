/* Two hidden regions for screen readers. Milestones only, the latest one wins within a quarter of a second. */
const DELAY_MS = 250;
const CLEAR_MS = 40;
const timers = new Map();

function say(id, text) {
  const region = document.getElementById(id);
  if (!region || !text) return;
  clearTimeout(timers.get(id));
  timers.set(
    id,
    setTimeout(() => {
      // An equal text is only spoken again when the region was empty in between.
      region.textContent = "";
      timers.set(id, setTimeout(() => (region.textContent = text), CLEAR_MS));
    }, DELAY_MS),
  );
}

/** Says `text` when the reader is idle. */
export const announce = (text) => say("announce-status", text);

/** Says `text` at once: something failed or ran out. */
export const alarm = (text) => say("announce-alert", text);

/** Lets server-rendered fragments speak: an element with data-announce that a swap brought. */
export function start() {
  document.addEventListener("htmx:afterSwap", (event) => {
    const spoken = event.detail?.elt?.querySelector?.("[data-announce]");
    if (spoken) announce(spoken.dataset.announce);
  });
}
