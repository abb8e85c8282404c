import { Refused } from "./refused.js";

/** The dialog that asks before something is ended. */
export class Question {
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
