/* The answer panel's text, kept as a value: a delta is placed by (step, offset), so text never doubles. */
export class Answer {
  /**
   * `step` and `text` are what the page already shows and `end` the offset that this text reaches.
   * Offsets count code points, as the server does.
   */
  constructor(step = null, text = "", end = NaN) {
    this.step = step;
    this.text = text;
    this.end = Number.isInteger(end) ? end : [...text].length;
  }

  /** Takes one delta. Text of another step replaces what was there; an overlap is written once. */
  take({ step, offset, text }) {
    if (step !== this.step) {
      this.step = step;
      this.text = "";
      this.end = 0;
    }
    const at = Number.isInteger(offset) ? offset : this.end;
    const points = [...text];
    const fresh = points.slice(Math.max(0, this.end - at));
    if (!fresh.length) return false;
    this.text += fresh.join("");
    this.end = at + points.length;
    return true;
  }
}
