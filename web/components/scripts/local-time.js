const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'long' });
const date = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium' });

function describe(at) {
  const seconds = (at.getTime() - Date.now()) / 1_000;
  if (Math.abs(seconds) > 7 * 86_400) return date.format(at);
  const [unit, size] = UNITS.find(([, each]) => Math.abs(seconds) >= each) ?? [];
  return unit ? relative.format(Math.round(seconds / size), unit) : seconds > 0 ? 'in a moment' : 'just now';
}

/** `<local-time><time datetime>`: the time relative to now, and the exact one of the person's zone on hover. */
class LocalTime extends HTMLElement {
  #timer;

  connectedCallback() {
    const time = this.querySelector('time');
    const at = new Date(time?.dateTime);
    if (Number.isNaN(at.getTime())) return;
    time.title = exact.format(at);
    const show = () => {
      time.textContent = describe(at);
    };
    show();
    this.#timer = setInterval(show, 30_000);
  }

  disconnectedCallback() {
    clearInterval(this.#timer);
  }
}
customElements.define('local-time', LocalTime);
