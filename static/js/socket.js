/* A websocket that comes back: heartbeat watch, back-off with jitter, and what each close code means. */
const BEAT_MS = 15_000;
const SILENCE_MS = 2 * BEAT_MS + 2_000;
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;
const STEADY_MS = 5_000;
const FINAL = { 4401: "signed_out", 4403: "forbidden", 4404: "gone" };
const SLOW = 4408;

export class LiveSocket {
  /**
   * `address()` is asked before each attempt, so it can carry the last seq.
   * `onFrame(frame)` gets parsed frames and says whether one brought something new, which ends the back-off.
   * `onState(state, detail)` gets live, offline, signed_out, forbidden, gone.
   */
  constructor({ address, onFrame, onState }) {
    Object.assign(this, { address, onFrame, onState });
    this.attempt = 0;
    this.socket = null;
    this.stopped = false;
    window.addEventListener("online", () => this.retryNow());
    window.addEventListener("pagehide", () => this.pause());
    window.addEventListener("pageshow", (event) => event.persisted && this.retryNow());
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && !this.socket) this.retryNow();
    });
  }

  open() {
    clearTimeout(this.waiting);
    if (this.stopped || this.socket) return;
    const url = new URL(this.address(), location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(url);
    this.socket = socket;
    this.watchSilence();
    socket.onmessage = (message) => this.receive(socket, message);
    socket.onclose = (event) => this.closed(socket, event.code);
  }

  receive(socket, message) {
    if (socket !== this.socket) return; // a late frame of a connection that was given up
    this.watchSilence();
    let frame;
    try {
      frame = JSON.parse(message.data);
    } catch {
      return;
    }
    if (frame.type === "hello") {
      this.steady = setTimeout(() => (this.attempt = 0), STEADY_MS);
      this.onState("live", frame);
    }
    if (this.onFrame(frame)) this.attempt = 0;
  }

  closed(socket, code) {
    if (socket !== this.socket) return;
    this.forget();
    if (FINAL[code]) {
      this.stopped = true;
      this.onState(FINAL[code], {});
    } else if (code === SLOW && this.attempt === 0) {
      this.attempt = 1;
      this.open();
    } else this.wait();
  }

  /** Gives this connection up and asks again from the last seq; at once the first time, then with back-off. */
  restart() {
    const socket = this.socket;
    this.forget();
    socket?.close();
    if (this.attempt === 0) {
      this.attempt = 1;
      this.open();
    } else this.wait();
  }

  /** Tells the server something that nobody depends on; not kept while there is no connection. */
  say(message) {
    if (this.socket?.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  retryNow() {
    if (this.stopped || this.socket) return;
    this.open();
  }

  wait() {
    if (this.stopped) return;
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** this.attempt);
    this.attempt += 1;
    this.onState("offline", { attempt: this.attempt });
    this.waiting = setTimeout(() => this.open(), longest / 2 + Math.random() * (longest / 2));
  }

  pause() {
    const socket = this.socket;
    this.forget();
    clearTimeout(this.waiting);
    socket?.close();
  }

  forget() {
    this.socket = null;
    clearTimeout(this.silence);
    clearTimeout(this.steady);
  }

  watchSilence() {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => this.restart(), SILENCE_MS);
  }
}
