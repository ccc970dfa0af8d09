/* What the reader sees of the connection: the dot in the top bar and, after three seconds offline, a banner. */
import { announce } from "./announce.js";
import { word } from "./words.js";

const BANNER_AFTER_MS = 3000;
const TONES = { live: "ok", catching: "info", offline: "late" };
let bannerTimer = 0;

/** Shows `live`, `catching` or `offline` in the top bar. */
export function showDot(state) {
  const dot = document.querySelector("[data-live-dot]");
  if (!dot || dot.dataset.state === state) return;
  dot.hidden = false;
  dot.dataset.state = state;
  dot.dataset.tone = TONES[state] ?? "neutral";
  dot.querySelector("[data-live-word]").textContent = word(state);
}

/** Shows the offline banner in a while; `title()` is asked when it appears. */
export function showOffline({ title, attempt, retry }) {
  showDot("offline");
  const banner = document.querySelector("[data-connection]");
  if (!banner) return;
  const show = () => {
    fill(banner, title(), word("attempt", { n: attempt }));
    const button = banner.querySelector("[data-connection-retry]");
    button.hidden = false;
    button.onclick = retry;
    if (banner.hidden) announce(title());
    banner.hidden = false;
  };
  if (!banner.hidden) show();
  else {
    clearTimeout(bannerTimer);
    bannerTimer = setTimeout(show, Math.max(0, BANNER_AFTER_MS - (performance.now() - since())));
  }
}

let offlineSince = null;
function since() {
  offlineSince ??= performance.now();
  return offlineSince;
}

/** Takes the banner away; true if it had been there. */
export function hideOffline() {
  clearTimeout(bannerTimer);
  offlineSince = null;
  const banner = document.querySelector("[data-connection]");
  if (!banner || banner.hidden) return false;
  banner.hidden = true;
  return true;
}

/** The server ended it for good: says why, with a way to sign in where that helps. */
export function showEnded(reason) {
  hideOffline();
  showDot("offline");
  const banner = document.querySelector("[data-connection]");
  if (!banner) return;
  fill(banner, word(reason), word(`${reason}_note`));
  banner.querySelector("[data-connection-retry]").hidden = true;
  banner.querySelector("[data-connection-login]").hidden = reason !== "signed_out";
  banner.hidden = false;
  announce(word(reason));
}

function fill(banner, title, note) {
  banner.querySelector("[data-connection-title]").textContent = title;
  banner.querySelector("[data-connection-note]").textContent = note;
}
