// Replaces the content of elements with `data-live` by what the server sends (server-sent events). Without this script the
// page shows its state when it was opened.
for (const element of document.querySelectorAll('[data-live]')) {
  const source = new EventSource(element.dataset.live);
  source.addEventListener('update', ({ data }) => {
    element.innerHTML = JSON.parse(data);
  });
}
