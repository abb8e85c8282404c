// The fleet page, alive. Without this module everything on it works by plain forms; see docs/reference/fleet.md.
//
// The server renders; this module asks for the part that changes, and puts in what differs. What is typed, the focus and the
// outputs stay. Text from a box is only ever set as text.

const EVERY_MS = 5000;
const WHILE_MOVING_MS = 1000; // something is starting or ending
const FOLLOWED_AT_ONCE = 3;
const MAXIMUM_LINES = 2000;
const MAXIMUM_CHARACTERS = 512 * 1024;
const LONGEST_LINE = 8192;

// ── What a command prints, as lines of text ────────────────────────────────────────────────────────────────────────────────

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

// ── Following runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────

/** One run that is followed, from where it was left, for as long as it is looked at. */
class Follower {
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
    this.again = setTimeout(() => this.wants && this.start(), EVERY_MS);
  }

  #say(text) {
    if (this.says) this.says.textContent = text;
  }
}

// ── Bringing the page up to date ───────────────────────────────────────────────────────────────────────────────────────────

const sources = new WeakMap();

/** Make the keyed children of `old` those of `fresh`. A group is gone through; any other is put in where its source differs. */
export function merge(old, fresh) {
  const kept = new Map([...old.children].map((child) => [child.dataset.key, child]));
  let previous = null;
  for (const child of [...fresh.children]) {
    let node = kept.get(child.dataset.key);
    kept.delete(child.dataset.key);
    if (!node) node = child;
    else if (child.hasAttribute("data-group") && node.hasAttribute("data-group")) merge(node, child);
    else if (differs(node, child)) {
      node.replaceWith(child);
      node = child;
    }
    if (node === child) remember(node);
    const place = previous ? previous.nextElementSibling : old.firstElementChild;
    if (place !== node) old.insertBefore(node, place);
    previous = node;
  }
  for (const gone of kept.values()) gone.remove();
}

function differs(node, child) {
  if (child.dataset.version !== undefined) return node.dataset.version !== child.dataset.version;
  return sources.get(node) !== child.outerHTML;
}

function remember(node) {
  if (!node.hasAttribute("data-group")) sources.set(node, node.outerHTML);
  else for (const child of node.children) remember(child);
}

// ── The page ───────────────────────────────────────────────────────────────────────────────────────────────────────────────

class Refused extends Error {}

class Page {
  constructor(main) {
    this.main = main;
    this.api = main.dataset.api;
    this.live = main.querySelector("[data-live]");
    this.usage = main.querySelector("[data-usage]");
    this.trouble = main.querySelector("#trouble");
    this.news = main.querySelector("#news");
    this.ask = new Question(this, main.querySelector("#ask"));
    this.followers = new Map();
    this.said = this.#sayings();
    for (const child of this.live.children) remember(child);
    main.addEventListener("submit", (event) => this.#submitted(event));
    main.addEventListener("keydown", (event) => this.#pressed(event));
    document.addEventListener("visibilitychange", () => this.#lookedAt());
    this.#adopt();
    this.#next();
  }

  refreshSoon() {
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.refresh(), 150);
  }

  async refresh() {
    clearTimeout(this.timer);
    if (this.isRefreshing) {
      this.refreshSoon();
      return;
    }
    this.isRefreshing = true;
    try {
      this.#show(await this.#part(this.main.dataset.liveUrl));
      this.#tell(this.trouble, "");
    } catch (error) {
      this.#tell(this.trouble, error instanceof Refused ? error.message : "The site does not answer. Trying again…");
    } finally {
      this.isRefreshing = false;
      this.#next();
    }
  }

  /** Follow this one, and leave the one that was begun first where there would be too many. */
  follow(follower) {
    if (!follower.wants || document.hidden) return;
    const busy = [...this.followers.values()].filter((other) => other.source && other !== follower);
    if (busy.length >= FOLLOWED_AT_ONCE) {
      busy[0].leave();
      busy[0].details.open = false;
    }
    this.followers.delete(follower.run);
    this.followers.set(follower.run, follower);
    follower.start();
  }

  /** Follow as many of those that are open as may be. */
  balance() {
    for (const follower of this.followers.values()) {
      if (!follower.wants || follower.source || document.hidden) continue;
      if ([...this.followers.values()].filter((other) => other.source).length < FOLLOWED_AT_ONCE) follower.start();
      else follower.waits();
    }
  }

  announce(text) {
    this.news.textContent = text;
  }

  /** POST to the API. Throws Refused with what it said. */
  async post(address, body, key) {
    let answer;
    try {
      answer = await fetch(this.api + address, {
        method: "POST",
        headers: {
          "Content-Type": "application/json",
          "X-CSRFToken": document.querySelector("input[name=csrfmiddlewaretoken]").value,
          ...(key ? { "Idempotency-Key": key } : {}),
        },
        body: body === undefined ? undefined : JSON.stringify(body),
      });
    } catch {
      throw new Refused("The site does not answer. Nothing is lost: try it again.");
    }
    if (answer.ok) return;
    const said = await answer.json().catch(() => ({}));
    throw new Refused(said.error?.detail ?? `The site refused it (${answer.status}).`);
  }

  async #part(address) {
    const answer = await fetch(address, { headers: { Accept: "text/html" } });
    if (answer.redirected) throw new Refused("You are signed out. Reload the page to sign in again.");
    if (!answer.ok) throw new Error(String(answer.status));
    return new DOMParser().parseFromString(await answer.text(), "text/html").body.firstElementChild;
  }

  #show(fresh) {
    const focused = document.activeElement;
    const within = focused?.closest?.("article.box")?.id;
    const id = focused?.id;
    const boxes = this.live.querySelectorAll("article.box").length;
    merge(this.live, document.importNode(fresh, true));
    this.#adopt();
    if (focused && !focused.isConnected) this.#refocus(id, within);
    this.#announceChanges();
    if (boxes !== this.live.querySelectorAll("article.box").length) this.#refreshUsage();
  }

  #refocus(id, within) {
    const again = (id && document.getElementById(id)) || (within && document.getElementById(within)?.querySelector("h3"));
    (again || this.main).focus();
  }

  async #refreshUsage() {
    try {
      this.usage.replaceChildren(document.importNode(await this.#part(this.main.dataset.usageUrl), true));
    } catch {
      // the old figures stay; the page itself says when the site is away
    }
  }

  #sayings() {
    const found = new Map();
    for (const element of this.live.querySelectorAll("[data-say]")) {
      const run = element.closest("[data-run]");
      const box = element.closest("article.box");
      found.set(`${box?.id}/${run?.dataset.run}`, element.dataset.say);
    }
    return found;
  }

  #announceChanges() {
    const now = this.#sayings();
    const changed = [...now].filter(([key, saying]) => this.said.get(key) !== saying).map(([, saying]) => saying);
    this.said = now;
    if (changed.length) this.announce(changed.join(". "));
  }

  #adopt() {
    for (const [run, follower] of this.followers) {
      if (follower.section.isConnected) continue;
      follower.leave();
      this.followers.delete(run);
    }
    for (const section of this.live.querySelectorAll("[data-run]")) {
      if (!this.followers.has(section.dataset.run)) this.followers.set(section.dataset.run, new Follower(this, section));
    }
    this.balance();
  }

  #next() {
    clearTimeout(this.timer);
    if (document.hidden) return;
    const isMoving = this.live.querySelector(".state.starting, .state.ending") !== null;
    this.timer = setTimeout(() => this.refresh(), isMoving ? WHILE_MOVING_MS : EVERY_MS);
  }

  #lookedAt() {
    if (document.hidden) {
      clearTimeout(this.timer);
      for (const follower of this.followers.values()) follower.leave();
    } else {
      this.balance();
      this.refresh();
    }
  }

  #pressed(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.name === "command") {
      event.target.form.requestSubmit();
    }
  }

  #submitted(event) {
    const form = event.target;
    if (form.dataset.ask) this.ask.put(form);
    else if (form.dataset.start) {
      this.#send(form, "runs", { box: form.dataset.start, command: form.elements.command.value }, form.dataset.told);
    } else if ("create" in form.dataset) {
      const label = form.elements.label.value.trim();
      this.#send(form, "boxes", label ? { label } : {}, "A box was asked for");
    } else return;
    event.preventDefault();
  }

  /** Send a form to the API. Its key stays until it was taken, so that what is sent again acts once. */
  async #send(form, address, body, told) {
    if (form.isBusy) return;
    const wrong = form.querySelector("[role=alert]");
    const key = form.elements.key;
    const sent = JSON.stringify(body);
    if (form.sent !== undefined && form.sent !== sent) key.value = newKey();
    form.sent = sent;
    form.isBusy = true;
    this.#tell(wrong, "");
    try {
      await this.post(address, body, key.value);
      for (const field of form.querySelectorAll("textarea, input:not([type=hidden])")) field.value = "";
      form.sent = undefined;
      key.value = newKey();
      this.announce(told);
      await this.refresh();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.#tell(wrong, error.message);
    } finally {
      form.isBusy = false;
    }
  }

  #tell(element, text) {
    if (element.textContent !== text) element.textContent = text;
    element.hidden = text === "";
  }
}

/** The dialog that asks before something is ended. */
class Question {
  constructor(page, dialog) {
    this.page = page;
    this.dialog = dialog;
    this.wrong = dialog.querySelector("[role=alert]");
    this.yes = dialog.querySelector("[value=yes]");
    this.yes.addEventListener("click", () => this.#answered());
  }

  put(form) {
    this.form = form;
    this.wrong.hidden = true;
    this.dialog.querySelector("h2").textContent = form.dataset.ask;
    this.dialog.querySelector("p").textContent = form.dataset.text;
    this.yes.textContent = form.dataset.yes;
    this.dialog.showModal();
  }

  async #answered() {
    if (this.yes.getAttribute("aria-disabled") === "true") return;
    this.yes.setAttribute("aria-disabled", "true");
    try {
      await this.page.post(this.form.dataset.do);
      this.dialog.close();
      this.page.announce(this.form.dataset.told);
      await this.page.refresh();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      this.wrong.textContent = error.message;
      this.wrong.hidden = false;
    } finally {
      this.yes.removeAttribute("aria-disabled");
    }
  }
}

function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const main = document.querySelector("[data-fleet]");
if (main) new Page(main);
