/** `<busy-form label>`: while the form in it is on its way, its button says what is happening and cannot be pressed again. */
class BusyForm extends HTMLElement {
  connectedCallback() {
    const button = this.querySelector('button');
    if (!button) return;
    const name = button.textContent;
    this.addEventListener('submit', () => {
      // After the browser has read the form.
      setTimeout(() => {
        button.disabled = true;
        button.textContent = this.getAttribute('label');
        button.setAttribute('aria-live', 'polite');
      });
    });
    // Back from the page that followed.
    addEventListener('pageshow', () => {
      button.disabled = false;
      button.textContent = name;
    });
  }
}
customElements.define('busy-form', BusyForm);
