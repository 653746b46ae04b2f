/** `<copy-text><code>…</code><button hidden>`: the button copies the text. It is shown where the browser can copy. */
class CopyText extends HTMLElement {
  connectedCallback() {
    const button = this.querySelector('button');
    const text = this.querySelector('code, pre');
    if (!button || !text || !navigator.clipboard) return;
    button.hidden = false;
    const name = button.textContent;
    button.addEventListener('click', async () => {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = 'Copied';
      setTimeout(() => {
        button.textContent = name;
      }, 2_000);
    });
  }
}
customElements.define('copy-text', CopyText);
