/** `<poll-region src seconds>`: loads its content again until the server marks it `data-settled`. Pauses in hidden tabs. */
class PollRegion extends HTMLElement {
  #timer;

  connectedCallback() {
    this.#timer = setInterval(() => this.#load(), Number(this.getAttribute('seconds') ?? 10) * 1_000);
  }

  disconnectedCallback() {
    clearInterval(this.#timer);
  }

  async #load() {
    // Not under the hands of a person.
    if (document.hidden || this.contains(document.activeElement)) return;
    const response = await fetch(this.getAttribute('src')).catch(() => undefined);
    // A session that ended leads to the sign-in.
    if (!response?.ok || response.redirected) return;
    const html = await response.text();
    if (html.trim() === this.innerHTML.trim() || this.contains(document.activeElement)) return;
    this.innerHTML = html;
    if (this.querySelector('[data-settled]')) clearInterval(this.#timer);
  }
}
customElements.define('poll-region', PollRegion);
