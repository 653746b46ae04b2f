/** `<live-region src>`: replaces its content by what the server sends. Hidden tabs close their stream: HTTP/1.1 has six. */
class LiveRegion extends HTMLElement {
  #source;
  #shown = this.innerHTML.trim();
  #waiting;
  #onVisibility = () => (document.hidden ? this.#close() : this.#open());
  #onBlur = () => queueMicrotask(() => this.#show());

  connectedCallback() {
    document.addEventListener('visibilitychange', this.#onVisibility);
    this.addEventListener('focusout', this.#onBlur);
    this.#onVisibility();
  }

  disconnectedCallback() {
    document.removeEventListener('visibilitychange', this.#onVisibility);
    this.#close();
  }

  #open() {
    if (this.#source) return;
    this.#source = new EventSource(this.getAttribute('src'));
    this.#source.addEventListener('update', ({ data }) => {
      this.#waiting = JSON.parse(data);
      this.#show();
    });
  }

  #close() {
    this.#source?.close();
    this.#source = undefined;
  }

  /** Not under the hands of a person: an update waits until the focus has left, and open dialogs are closed. */
  #show() {
    if (this.#waiting === undefined || this.contains(document.activeElement)) return;
    if (this.querySelector(':popover-open')) return;
    if (this.#waiting.trim() !== this.#shown) {
      this.#shown = this.#waiting.trim();
      const chosen = new Set([...this.querySelectorAll('input:checked')].map(({ value }) => value));
      this.innerHTML = this.#waiting;
      for (const input of this.querySelectorAll('input[type=checkbox]'))
        input.checked ||= chosen.has(input.value);
      this.dispatchEvent(new CustomEvent('live-update', { bubbles: true }));
    }
    this.#waiting = undefined;
  }
}
customElements.define('live-region', LiveRegion);
