/* The run page's socket: events by sequence number, painted in batches, never twice. */
import { announce } from "./announce.js";
import { Answer } from "./answer.js";
import { hideOffline, showDot, showEnded, showOffline } from "./connection.js";
import { swapFragment } from "./fragments.js";
import { LiveSocket } from "./socket.js";
import { EventList } from "./stream.js";
import { clockText, setServerTime, tick } from "./time.js";
import { word } from "./words.js";

const PAINT_EVERY_MS = 100;
const THINNED_EVERY_MS = 500;
const THIN_AFTER = 5000;

class RunPage {
  constructor(root) {
    this.root = root;
    this.last = Number(root.dataset.after) || 0;
    this.lastTime = null;
    this.head = this.last;
    this.replayed = 0;
    this.busy = false;
    this.fragments = new Map();
    this.events = new EventList(root);
    this.answer = answerOf(root);
    this.paintedAt = 0;
    this.socket = new LiveSocket({
      address: () => `/ws/runs/${root.dataset.liveRun}/?after=${this.last}`,
      onFrame: (frame) => this.receive(frame),
      onState: (state, detail) => this.connection(state, detail),
    });
    document.addEventListener("visibilitychange", () => document.hidden || this.schedule());
    for (const event of ["focusout", "close"]) {
      root.addEventListener(event, () => this.fragments.size && this.schedule(), true); // a busy region is free now
    }
    this.socket.open();
  }

  receive(frame) {
    if (frame.type === "event") return this.take(frame);
    if (frame.type === "hello") this.greet(frame);
    else if (frame.type === "fragment") {
      this.fragments.set(frame.target, frame.html); // only the newest of a region counts
      this.schedule();
    }
    return false;
  }

  greet(frame) {
    setServerTime(frame.server_time);
    this.head = Number(frame.seq) || 0;
    this.replayed = 0;
    if (this.last < this.head) showDot("catching");
    else this.caughtUp();
  }

  /* True if the event was the next one. */
  take(frame) {
    const seq = Number(frame.seq);
    if (!Number.isInteger(seq) || seq <= this.last) return false; // seen before
    // One that stands for a row of folded ones says where that row began.
    const first = Number(frame.event?.data?.since) || seq;
    if (first > this.last + 1) {
      this.socket.restart(); // a hole: ask again from the last one that is whole
      return false;
    }
    this.last = seq;
    const event = frame.event ?? {};
    this.lastTime = event.ts ?? this.lastTime;
    if (event.type === "text_delta") this.takeText(event);
    else if (event.type === "done" || event.type === "run_status") this.writing(event.data?.to === "running");
    if (frame.html) this.events.add(seq, frame.html, seq > this.head);
    this.replayed += 1;
    if (seq === this.head) this.caughtUp();
    this.schedule();
    return true;
  }

  takeText(event) {
    const data = event.data ?? {};
    if (typeof data.text !== "string") return;
    this.busy = true;
    this.answerChanged = this.answer.take({ step: String(data.step ?? event.step), offset: data.offset, text: data.text }) || this.answerChanged;
  }

  /* The cursor blinks only while text may still come. */
  writing(on) {
    this.busy = on;
    this.answerChanged ||= this.answer.text !== "";
  }

  caughtUp() {
    showDot("live");
    if (!hideOffline()) return;
    announce(word(this.replayed === 1 ? "caught_up_one" : "caught_up", { n: this.replayed }));
  }

  connection(state, detail) {
    if (state === "live") return;
    if (state === "offline") {
      const title = () => word("reconnecting", { time: this.lastTime ? clockText(this.lastTime) : clockText(Date.now()) });
      showOffline({ title, attempt: detail.attempt, retry: () => this.socket.retryNow() });
    } else showEnded(state);
  }

  /* A hidden page keeps reading and paints when it is looked at again. */
  schedule() {
    if (this.scheduled || document.hidden) return;
    this.scheduled = true;
    const every = this.last > THIN_AFTER ? THINNED_EVERY_MS : PAINT_EVERY_MS;
    const wait = Math.max(0, every - (performance.now() - this.paintedAt));
    setTimeout(() => requestAnimationFrame(() => this.paint()), wait);
  }

  paint() {
    this.scheduled = false;
    this.paintedAt = performance.now();
    this.events.paint();
    for (const [target, html] of this.fragments) {
      const outcome = swapFragment(target, html);
      if (outcome !== "busy") this.fragments.delete(target);
      if (outcome === "done") this.answerChanged ||= this.isOlderAnswer(target);
    }
    if (this.answerChanged) this.paintAnswer();
    this.paintCounts();
    tick();
  }

  /* A region rendered a moment ago may hold less of the step's text than has arrived here since. */
  isOlderAnswer(target) {
    const text = document.getElementById(target)?.querySelector("[data-answer-text][data-step]");
    return text?.dataset.step === this.answer.step && text.textContent !== this.answer.text;
  }

  paintAnswer() {
    this.answerChanged = false;
    const panel = this.root.querySelector("[data-answer]");
    const text = panel?.querySelector("[data-answer-text]");
    // A panel without a step, once there is text, is the finished answer: the server's word is final.
    if (!text || (text.dataset.step === undefined && text.textContent.trim() && !this.busy)) return;
    panel.hidden = false;
    text.dataset.plain = "";
    text.dataset.step = this.answer.step;
    text.setAttribute("aria-busy", String(this.busy));
    text.textContent = this.answer.text;
  }

  paintCounts() {
    for (const node of this.root.querySelectorAll("[data-event-total]")) node.textContent = String(this.last);
    const notice = this.root.querySelector("[data-thinned]");
    if (notice && this.last > THIN_AFTER) notice.hidden = false;
  }
}

function answerOf(root) {
  const text = root.querySelector("[data-answer-text][data-step]");
  return text ? new Answer(text.dataset.step, text.textContent, Number(text.dataset.offset)) : new Answer();
}

export function start() {
  const root = document.querySelector("[data-live-run]");
  if (root) new RunPage(root);
}
