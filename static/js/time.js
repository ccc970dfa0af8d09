/* Makes server-printed UTC times relative and counts down, by the server's clock, not this machine's. */
import { alarm, announce } from "./announce.js";
import { chosen } from "./choices.js";
import { word } from "./words.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const MILESTONES_MIN = [10, 2];
const UNITS = [["day", DAY], ["hour", HOUR], ["minute", MINUTE], ["second", 1000]];

const language = document.documentElement.lang || "en";
const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto", style: "short" });
const zone = chosen("zone") === "utc" ? { timeZone: "UTC" } : {};
const zoneName = zone.timeZone ? { timeZoneName: "short" } : {};
const dateTime = new Intl.DateTimeFormat(language, {
  year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit", ...zone, ...zoneName,
});
const clock = new Intl.DateTimeFormat(language, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", ...zone });
const announced = new WeakMap();
let offset = 0;
let timer = 0;

/** Milliseconds since the epoch as the server counts them. */
export const serverNow = () => Date.now() + offset;

/** Takes over the server's time, from a socket's hello. */
export function setServerTime(iso) {
  const at = Date.parse(iso);
  if (Number.isFinite(at)) offset = at - Date.now();
}

/** `16:02:03` of a moment, in the reader's zone. */
export const clockText = (iso) => clock.format(new Date(iso));

function relativeText(at, now) {
  const distance = at - now;
  if (Math.abs(distance) >= DAY) return dateTime.format(at);
  const [unit, size] = UNITS.find(([, size]) => Math.abs(distance) >= size) ?? UNITS[3];
  return relative.format(Math.trunc(distance / size), unit);
}

function spanText(left) {
  const format = (value, unit) => new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "short" }).format(value);
  if (left < 2 * MINUTE) return format(Math.ceil(left / 1000), "second");
  if (left < HOUR) return format(Math.floor(left / MINUTE), "minute");
  const hours = Math.floor(left / HOUR);
  if (hours >= 48) return format(Math.floor(left / DAY), "day");
  const minutes = Math.floor((left % HOUR) / MINUTE);
  return minutes && hours < 12 ? `${format(hours, "hour")} ${format(minutes, "minute")}` : format(hours, "hour");
}

function countDown(element, at, now) {
  const left = at - now;
  const whole = at - Date.parse(element.dataset.since ?? "");
  const share = whole > 0 ? left / whole : 1;
  if (left <= 0 || share <= 0.1) element.dataset.tone = "bad";
  else if (share <= 0.25) element.dataset.tone = "wait";
  put(element, left <= 0 ? word("expired_short") : word("left", { time: spanText(left) }));
  if (element.dataset.announceExpiry !== undefined) announceLeft(element, left);
}

/* The first look only notes how far it is: a reader is told of changes, never of the initial value. */
function announceLeft(element, left) {
  const stage = left <= 0 ? 0 : (MILESTONES_MIN.filter((minutes) => left <= minutes * MINUTE).pop() ?? Infinity);
  const before = announced.get(element);
  announced.set(element, stage);
  if (before === undefined || stage >= before) return;
  if (stage === 0) alarm(word("expired"));
  else announce(word("expires_soon", { n: stage }));
}

function endForm(form) {
  if (form.dataset.ended !== undefined) return;
  form.dataset.ended = "";
  for (const control of form.querySelectorAll("button, input, select, textarea")) control.disabled = true;
  for (const note of form.querySelectorAll("[data-expired-note]")) note.hidden = false;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function paint() {
  const now = serverNow();
  let soonest = Infinity;
  for (const element of document.querySelectorAll('time[data-when]:not([data-when="set"])')) {
    const at = Date.parse(element.dateTime);
    if (!Number.isFinite(at)) continue;
    const style = element.dataset.when;
    if (style === "countdown") {
      countDown(element, at, now);
      if (at > now) soonest = Math.min(soonest, at - now);
    } else if (style === "clock" || style === "date") {
      put(element, (style === "clock" ? clock : dateTime).format(at));
      element.dataset.when = "set"; // it will never read otherwise
    } else {
      put(element, relativeText(at, now));
      if (Math.abs(at - now) < MINUTE) soonest = Math.min(soonest, Math.abs(at - now));
    }
  }
  for (const form of document.querySelectorAll("form[data-expires]")) {
    const left = Date.parse(form.dataset.expires) - now;
    if (left <= 0) endForm(form);
    else soonest = Math.min(soonest, left);
  }
  return soonest;
}

/** Paints all times now and sets the next tick: each second near an end, else twice a minute. */
export function tick() {
  clearTimeout(timer);
  const soonest = paint();
  timer = setTimeout(tick, soonest < 2 * MINUTE ? 1000 : Math.min(30_000, Math.max(1000, soonest - 2 * MINUTE)));
}

export function start() {
  const printed = document.querySelector('meta[name="server-time"]')?.content;
  const age = performance.now(); // since the request for this page began
  if (printed && Number.isFinite(Date.parse(printed))) offset = Date.parse(printed) - (Date.now() - age);
  if (Math.abs(offset) < 5000) offset = 0; // the difference is the network, not a wrong clock
  tick();
  document.addEventListener("htmx:afterSettle", tick);
  document.addEventListener("visibilitychange", () => document.hidden || tick());
}
