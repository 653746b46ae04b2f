// A checkbox that selects every message of its form. Without scripts it is not shown.
customElements.define(
  'select-all',
  class extends HTMLElement {
    connectedCallback() {
      const box = this.querySelector('input');
      this.hidden = false;
      box.addEventListener('change', () => {
        for (const each of this.closest('form').querySelectorAll('input[name="ids"]'))
          each.checked = box.checked;
      });
    }
  },
);
