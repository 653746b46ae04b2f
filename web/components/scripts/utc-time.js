/** `<utc-time>` around a field of a time in UTC: people see and enter it in their own time zone. */
class UtcTime extends HTMLElement {
  connectedCallback() {
    const input = this.querySelector('input');
    if (!input?.form) return;
    const time = new Date(`${input.value}Z`);
    if (!Number.isNaN(time.getTime())) {
      time.setMinutes(time.getMinutes() - time.getTimezoneOffset());
      input.value = time.toISOString().slice(0, 16);
    }
    const hint = this.querySelector('.hint');
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    if (hint) hint.textContent = hint.textContent.replace('In UTC', `In your time zone (${timeZone})`);
    input.form.addEventListener('formdata', ({ formData }) => {
      const entered = new Date(formData.get(input.name));
      if (Number.isNaN(entered.getTime())) return;
      formData.set(input.name, entered.toISOString().slice(0, 16));
    });
  }
}
customElements.define('utc-time', UtcTime);
