/* The event list: a bounded queue of server-rendered rows, follows the end only while the reader is there. */
import { announce } from "./announce.js";

const ROWS_IN_DOM = 500;
const NEAR_END_PX = 32;

export class EventList {
  constructor(root) {
    this.list = root.querySelector("[data-event-list]");
    this.scroller = this.list?.closest("[data-event-scroll]") ?? this.list;
    this.jump = root.querySelector("[data-jump-latest]");
    this.earlier = root.querySelector("[data-show-earlier]");
    this.queue = [];
    this.jump?.addEventListener("click", () => this.toEnd());
    this.scroller?.addEventListener("scroll", () => this.atEnd() && this.jump && (this.jump.hidden = true), { passive: true });
    if (this.jump) this.jump.hidden = true;
    if (this.list) this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  /** Keeps a row for the next paint. While a page is hidden the queue holds no more than the list would. */
  add(seq, html, speak) {
    this.queue.push({ seq, html, speak });
    if (this.queue.length > ROWS_IN_DOM) {
      this.queue.shift();
      this.skipped = true;
    }
  }

  paint() {
    if (!this.list || !this.queue.length) return;
    const follow = this.atEnd();
    const rows = document.createDocumentFragment();
    for (const item of this.queue) {
      const row = rowFrom(item.html);
      if (!row) continue;
      row.dataset.seq = item.seq;
      rows.append(row);
      if (item.speak && row.dataset.announce) announce(row.dataset.announce);
    }
    this.queue = [];
    this.list.append(rows);
    this.trim();
    if (follow) this.scroller.scrollTop = this.scroller.scrollHeight;
    else if (this.jump) this.jump.hidden = false;
  }

  trim() {
    const surplus = this.list.children.length - ROWS_IN_DOM;
    for (let index = 0; index < surplus; index += 1) this.list.firstElementChild.remove();
    if ((surplus > 0 || this.skipped) && this.earlier) this.earlier.hidden = false;
  }

  atEnd() {
    const box = this.scroller;
    return box.scrollHeight - box.scrollTop - box.clientHeight <= NEAR_END_PX;
  }

  toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.jump.hidden = true;
    this.scroller.focus({ preventScroll: true });
  }
}

function rowFrom(html) {
  const template = document.createElement("template");
  template.innerHTML = html; // rendered and escaped by the server
  return template.content.firstElementChild;
}
