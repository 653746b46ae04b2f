// Passkeys on pages: lets the browser create or use one, and submits what it returns with an ordinary form. Without this
// script, or in a browser without passkeys, the forms stay hidden.
/* global SimpleWebAuthnBrowser */
(() => {
  const { browserSupportsWebAuthn, browserSupportsWebAuthnAutofill, startAuthentication, startRegistration } =
    SimpleWebAuthnBrowser;
  /** Options are valid for five minutes. */
  const REFRESH_MS = 4 * 60_000;

  /** Asks the service for options. Throws an Error with its explanation. */
  async function requestOptions(form) {
    const answer = await fetch(form.dataset.options, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'x-csrf-token': form.elements.csrf.value,
      },
      body: '{}',
    });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.detail);
    return body;
  }

  function explain(form, error) {
    // The person cancelled, or another ceremony took over.
    if (error.name === 'NotAllowedError' || error.name === 'AbortError') return;
    form.querySelector('[role=alert]').textContent =
      error.name === 'InvalidStateError' ? 'This device is registered already.' : error.message;
  }

  function submit(form, response) {
    form.elements.response.value = JSON.stringify(response);
    form.submit();
  }

  /** Offers passkeys among the browser's suggestions for the email address. */
  async function offerInAutofill(form) {
    if (!(await browserSupportsWebAuthnAutofill())) return;
    try {
      const optionsJSON = await requestOptions(form);
      submit(form, await startAuthentication({ optionsJSON, useBrowserAutofill: true }));
    } catch (error) {
      explain(form, error);
    }
  }

  async function run(form) {
    form.querySelector('[role=alert]').textContent = '';
    try {
      const optionsJSON = await requestOptions(form);
      const start = form.dataset.passkey === 'register' ? startRegistration : startAuthentication;
      submit(form, await start({ optionsJSON }));
    } catch (error) {
      explain(form, error);
    }
  }

  if (!browserSupportsWebAuthn()) return;
  for (const form of document.querySelectorAll('form[data-passkey]')) {
    form.hidden = false;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      run(form);
    });
    if (form.dataset.passkey === 'autofill') {
      offerInAutofill(form);
      setInterval(() => offerInAutofill(form), REFRESH_MS);
    }
  }
})();
