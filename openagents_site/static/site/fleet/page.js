// The page as a whole: it asks the site for the part that changes, puts in what differs, and sends forms to the API.

import { FOLLOWED_AT_ONCE, Follower } from "./follower.js";
import { merge, remember } from "./merge.js";
import { Question } from "./question.js";
import { Refused } from "./refused.js";

const EVERY_MS = 5000;
const WHILE_MOVING_MS = 1000; // something is starting or ending

export class Page {
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

function newKey() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
