// What a command prints, as lines of text in which nothing acts.

const LONGEST_LINE = 8192;

// An escape sequence; the same one unfinished at the end of what came so far; what would act where it is shown as it is.
const ESCAPE = /\x1b(?:\[[0-?]{0,32}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[ -/]{0,2}[0-Z\\^-~])/g;
const OPEN_ESCAPE = /\x1b(?:\[[0-?]{0,32}[ -/]{0,4}|\][^\x07\x1b]{0,4096}\x1b?|[ -/]{0,2})$/;
const CONTROLS = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2060\ufeff]/g;
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

function visible(text) {
  return text
    .replace(CONTROLS, (control) => {
      const code = control.charCodeAt(0);
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "␡" : "";
    })
    .replace(TURNS, (turn) => `[U+${turn.charCodeAt(0).toString(16).toUpperCase()}]`);
}

/** The last lines of a text that comes in pieces. A carriage return begins its line anew; nothing in a line acts. */
export class Lines {
  constructor() {
    this.carried = "";
    this.current = "";
    this.returned = false;
  }

  /** Takes the next piece; the lines that are complete now. `current` is the one that is not. */
  take(piece) {
    let text = this.carried + piece;
    this.carried = OPEN_ESCAPE.exec(text)?.[0] ?? "";
    text = text.slice(0, text.length - this.carried.length).replace(ESCAPE, "");
    const complete = [];
    for (const part of text.split(/(\r|\n)/)) {
      if (part === "\n") {
        complete.push(this.current);
        this.current = "";
        this.returned = false;
      } else if (part === "\r") {
        this.returned = true;
      } else if (part !== "") {
        this.#write(visible(part), complete);
      }
    }
    return complete;
  }

  #write(text, complete) {
    this.current = this.returned ? text : this.current + text;
    this.returned = false;
    while (this.current.length > LONGEST_LINE) {
      complete.push(this.current.slice(0, LONGEST_LINE));
      this.current = this.current.slice(LONGEST_LINE);
    }
  }
}
