// Following what runs print.

import { Screen } from "./screen.js";

export const FOLLOWED_AT_ONCE = 3;
const AGAIN_MS = 5000;

/** One run that is followed, from where it was left, for as long as it is looked at. */
export class Follower {
  constructor(page, section) {
    this.page = page;
    this.run = section.dataset.run;
    this.section = section;
    this.details = section.querySelector("details.output");
    this.says = this.details.querySelector(".following");
    this.position = Number(this.details.dataset.follow);
    this.isOver = this.details.hasAttribute("data-filled") && this.#hasEnded();
    this.pre = this.details.querySelector("pre");
    this.toEnd = this.details.querySelector(".to-end");
    this.pre.scrollTop = this.pre.scrollHeight;
    this.wasOpen = this.details.open; // the event also comes for one that was open from the beginning
    this.details.addEventListener("toggle", () => this.#toggled());
  }

  #toggled() {
    if (this.details.open === this.wasOpen) return;
    this.wasOpen = this.details.open;
    if (this.details.open) this.page.follow(this);
    else this.leave();
  }

  #hasEnded() {
    return this.section.querySelector("[data-ended]")?.dataset.ended === "yes";
  }

  get wants() {
    return this.details.open && !this.isOver && this.section.isConnected;
  }

  start() {
    if (this.source || this.isOver) return;
    this.screen ??= new Screen(this.pre, this.toEnd);
    this.source = new EventSource(`${this.page.api}runs/${this.run}/stream?offset=${this.position}`);
    this.source.addEventListener("open", () => this.#say("Following."));
    this.source.addEventListener("output", (event) => this.#printed(event));
    this.source.addEventListener("state", () => this.page.refreshSoon());
    this.source.addEventListener("end", () => this.#ended());
    this.source.addEventListener("error", () => this.#broke());
  }

  waits() {
    this.#say(`Not followed: ${FOLLOWED_AT_ONCE} are at once. Close one of them.`);
  }

  leave() {
    this.source?.close();
    this.source = null;
    clearTimeout(this.again);
    this.#say("");
  }

  #printed(event) {
    const { output, offset } = JSON.parse(event.data);
    if (offset > this.position && this.hasPrinted) this.screen.note(`${(offset - this.position).toLocaleString("en")} bytes are not kept`);
    this.hasPrinted = true;
    this.position = Number(event.lastEventId);
    this.screen.write(output);
  }

  #ended() {
    this.isOver = true;
    this.leave();
    this.page.refreshSoon();
    this.page.balance();
  }

  /** The browser goes on by itself where a connection was lost; not where the site answered with an error. */
  #broke() {
    this.#say("The connection was lost. Trying again…");
    if (this.source?.readyState !== EventSource.CLOSED) return;
    this.source = null;
    this.again = setTimeout(() => this.wants && this.start(), AGAIN_MS);
  }

  #say(text) {
    if (this.says) this.says.textContent = text;
  }
}
