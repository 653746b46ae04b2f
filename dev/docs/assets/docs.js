// The script of the documents: theme, copy buttons, one language for all samples, search. Pages work without it.
(() => {
  const THEMES = ['auto', 'light', 'dark'];
  const LANGUAGE = 'docs-language';
  const THEME = 'docs-theme';
  const MAX_RESULTS = 20;
  const { searchIndex, minisearch } = document.currentScript.dataset;

  const store = {
    read(name) {
      try {
        return localStorage.getItem(name);
      } catch {
        return null;
      }
    },
    write(name, value) {
      try {
        localStorage.setItem(name, value);
      } catch {
        // A browser may forbid it. The choice then lasts for this page.
      }
    },
  };

  // At once, before anything is drawn.
  const applyTheme = (theme) => {
    if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
  };
  applyTheme(store.read(THEME));

  function addThemeButton() {
    const button = document.querySelector('.theme');
    let index = Math.max(0, THEMES.indexOf(store.read(THEME)));
    const show = () => {
      button.textContent = `Theme: ${THEMES[index]}`;
      applyTheme(THEMES[index]);
    };
    show();
    button.hidden = false;
    button.addEventListener('click', () => {
      index = (index + 1) % THEMES.length;
      store.write(THEME, THEMES[index]);
      show();
    });
  }

  function addCopyButtons() {
    if (!navigator.clipboard) return;
    for (const block of document.querySelectorAll('.code')) {
      const button = document.createElement('button');
      button.type = 'button';
      button.className = 'copy';
      button.textContent = 'Copy';
      button.addEventListener('click', async () => {
        await navigator.clipboard.writeText(block.querySelector('code').textContent.trimEnd());
        button.textContent = 'Copied';
        setTimeout(() => {
          button.textContent = 'Copy';
        }, 1500);
      });
      block.append(button);
    }
  }

  function chooseLanguage(language) {
    for (const input of document.querySelectorAll('.tabs > input'))
      if (input.value === language) input.checked = true;
  }

  function rememberLanguage() {
    const chosen = store.read(LANGUAGE);
    if (chosen !== null) chooseLanguage(chosen);
    document.addEventListener('change', ({ target }) => {
      if (!target.matches('.tabs > input')) return;
      const top = target.getBoundingClientRect().top;
      chooseLanguage(target.value);
      // Other samples change their height: the one that was clicked stays where it is.
      window.scrollBy(0, target.getBoundingClientRect().top - top);
      store.write(LANGUAGE, target.value);
    });
  }

  let loading;
  function loadSearch() {
    loading ??= Promise.all([
      fetch(searchIndex).then((response) => response.json()),
      new Promise((resolve, reject) => {
        const script = document.createElement('script');
        script.src = minisearch;
        script.onload = resolve;
        script.onerror = reject;
        document.head.append(script);
      }),
    ]).then(([{ options, index }]) => window.MiniSearch.loadJS(index, options));
    loading.catch(() => {
      loading = undefined;
    });
    return loading;
  }

  function resultItem({ id, page, heading, excerpt }) {
    const item = document.createElement('li');
    const link = document.createElement('a');
    link.href = id;
    const parts = { b: heading, small: page === heading ? '' : page, span: excerpt };
    for (const [tag, text] of Object.entries(parts)) {
      const element = document.createElement(tag);
      element.textContent = text;
      if (text) link.append(element);
    }
    item.append(link);
    return item;
  }

  /** Shows what is found while someone types. */
  function attachSearch(input, count, results) {
    const run = async () => {
      const query = input.value.trim().slice(0, 200);
      if (query === '') {
        results.replaceChildren();
        count.textContent = '';
        return;
      }
      try {
        const search = await loadSearch();
        if (query !== input.value.trim().slice(0, 200)) return;
        const boostDocument = (_id, _term, { weight }) => weight;
        let found = search.search(query, { boostDocument });
        if (found.length === 0) found = search.search(query, { boostDocument, combineWith: 'OR' });
        results.replaceChildren(...found.slice(0, MAX_RESULTS).map(resultItem));
        count.textContent = found.length === 0 ? 'Nothing found.' : `${found.length} found.`;
      } catch {
        count.textContent = 'The search could not be loaded. All pages are listed at /docs/search.';
      }
    };
    input.addEventListener('input', run);
    input.form.addEventListener('submit', (event) => {
      event.preventDefault();
      results.querySelector('a')?.click();
    });
    results.parentElement.addEventListener('keydown', (event) => moveInResults(event, input, results));
    return run;
  }

  function moveInResults(event, input, results) {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
    const stops = [input, ...results.querySelectorAll('a')];
    const next = stops.indexOf(document.activeElement) + (event.key === 'ArrowDown' ? 1 : -1);
    if (!stops[next]) return;
    event.preventDefault();
    stops[next].focus();
  }

  function buildDialog() {
    const dialog = document.createElement('dialog');
    dialog.setAttribute('aria-label', 'Search');
    dialog.innerHTML =
      '<form class="search" role="search" action="/docs/search"><label for="dialog-query">Words, an operation or an error code</label><input type="search" id="dialog-query" name="q" maxlength="200" autocomplete="off"></form><p class="count" role="status"></p><ol class="results"></ol>';
    document.body.append(dialog);
    attachSearch(
      dialog.querySelector('input'),
      dialog.querySelector('.count'),
      dialog.querySelector('.results'),
    );
    dialog.addEventListener('click', ({ target }) => {
      if (target === dialog || target.closest('a')) dialog.close();
    });
    return dialog;
  }

  function addSearch() {
    const count = document.querySelector('main .count');
    if (count) {
      const input = document.querySelector('main input[type="search"]');
      input.value = new URLSearchParams(location.search).get('q') ?? '';
      const run = attachSearch(input, count, document.querySelector('main .results'));
      input.addEventListener('input', () => {
        document.querySelector('.all-pages').hidden = input.value.trim() !== '';
      });
      document.querySelector('.all-pages').hidden = input.value.trim() !== '';
      run();
      input.focus();
      return;
    }
    let dialog;
    const open = (event) => {
      event.preventDefault();
      dialog ??= buildDialog();
      if (!dialog.open) dialog.showModal();
      dialog.querySelector('input').focus();
      loadSearch().catch(() => undefined);
    };
    document.querySelector('.search-link').addEventListener('click', open);
    document.addEventListener('keydown', (event) => {
      const isTyping = event.target.matches('input, textarea, select');
      const isShortcut =
        (event.key === 'k' && (event.metaKey || event.ctrlKey)) || (event.key === '/' && !isTyping);
      if (isShortcut) open(event);
    });
  }

  /** Shows where the open page stands in a long list. */
  function showCurrentPage() {
    const nav = document.querySelector('.menu > nav');
    const current = nav?.querySelector('[aria-current]');
    if (current && nav.scrollHeight > nav.clientHeight)
      nav.scrollTop = current.offsetTop - nav.clientHeight / 3;
  }

  document.addEventListener('DOMContentLoaded', () => {
    addThemeButton();
    addCopyButtons();
    rememberLanguage();
    addSearch();
    showCurrentPage();
  });
})();
