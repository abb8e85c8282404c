// What a command prints, on the page. Text from a box is only ever set as text.

import { Lines } from "./lines.js";

const MAXIMUM_LINES = 2000;
const MAXIMUM_CHARACTERS = 512 * 1024;

/** A `pre` that shows the last lines, and stays at its end while it is there. */
export class Screen {
  constructor(pre, toEnd) {
    this.pre = pre;
    this.toEnd = toEnd;
    this.#clear();
    this.waiting = [];
    pre.addEventListener("scroll", () => this.#showButton(), { passive: true });
    toEnd?.addEventListener("click", () => {
      this.#scrollToEnd();
      pre.focus();
    });
  }

  write(piece) {
    this.waiting.push(piece);
    if (this.waiting.length === 1) requestAnimationFrame(() => this.#draw());
  }

  /** A line of ours among those of the command. */
  note(text) {
    this.write(`${this.lines.current === "" ? "" : "\n"}[${text}]\n`);
  }

  #clear() {
    this.lines = new Lines();
    this.last = document.createElement("span");
    this.characters = 0;
    this.isFresh = true;
  }

  #draw() {
    const wasAtEnd = this.#isAtEnd();
    const complete = this.lines.take(this.waiting.join(""));
    this.waiting = [];
    if (this.isFresh) this.pre.replaceChildren(this.last);
    this.isFresh = false;
    const added = document.createDocumentFragment();
    for (const line of complete.slice(-MAXIMUM_LINES)) {
      const span = document.createElement("span");
      span.textContent = `${line}\n`;
      this.characters += line.length + 1;
      added.append(span);
    }
    this.pre.insertBefore(added, this.last);
    if (this.last.textContent !== this.lines.current) this.last.textContent = this.lines.current;
    this.#bound();
    if (wasAtEnd) this.#scrollToEnd();
    this.#showButton();
  }

  #bound() {
    while (this.pre.childElementCount > MAXIMUM_LINES || this.characters > MAXIMUM_CHARACTERS) {
      const first = this.pre.firstElementChild;
      if (first === this.last) return;
      this.characters -= first.textContent.length;
      first.remove();
    }
  }

  #isAtEnd() {
    return this.pre.scrollTop + this.pre.clientHeight >= this.pre.scrollHeight - 8;
  }

  #scrollToEnd() {
    this.pre.scrollTop = this.pre.scrollHeight;
  }

  #showButton() {
    if (this.toEnd) this.toEnd.hidden = this.#isAtEnd();
  }
}
