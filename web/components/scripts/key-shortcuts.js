const SWITCH = 'key-shortcuts';
const TYPED_INTO = 'input, textarea, select, [contenteditable]';

/**
 * `<key-shortcuts>`: keys for what is in it. `data-key` lists those of a link, which opens, or of a button, which gets the
 * focus and waits for Enter, so that no single key decides anything. A person may switch them off (WCAG 2.1.4).
 */
class KeyShortcuts extends HTMLElement {
  #onKey = (event) => this.#press(event);

  connectedCallback() {
    document.addEventListener('keydown', this.#onKey);
    for (const help of this.querySelectorAll('.keys')) help.hidden = false;
    const toggle = this.querySelector('[data-shortcuts]');
    if (!toggle) return;
    toggle.checked = localStorage.getItem(SWITCH) !== 'off';
    toggle.addEventListener('change', () => localStorage.setItem(SWITCH, toggle.checked ? 'on' : 'off'));
  }

  disconnectedCallback() {
    document.removeEventListener('keydown', this.#onKey);
  }

  #press(event) {
    const { key, target, repeat, altKey, ctrlKey, metaKey, isComposing, defaultPrevented } = event;
    if (repeat || altKey || ctrlKey || metaKey || isComposing || defaultPrevented) return;
    if (target.closest(TYPED_INTO) || document.querySelector('[popover].dialog:popover-open')) return;
    if (localStorage.getItem(SWITCH) === 'off') return;
    const found = this.querySelector(`[data-key~="${CSS.escape(key)}"]`);
    if (!found) return;
    event.preventDefault();
    if (found.localName === 'a') found.click();
    else found.focus();
  }
}
customElements.define('key-shortcuts', KeyShortcuts);
