/** More is no message of the service. */
const MAX_CHARACTERS = 64 * 1024 * 1024;

/** Reads the data of Server-Sent Events; other fields say nothing here. */
export async function* readServerEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const bytes of body) {
    const blocks = (rest + decoder.decode(bytes, { stream: true })).split(/\r\n\r\n|\n\n|\r\r/);
    rest = blocks.pop() ?? '';
    if (rest.length > MAX_CHARACTERS) throw new Error('An event of the service has no end.');
    for (const block of blocks) {
      const data = block
        .split(/\r\n|\n|\r/)
        .flatMap((line) => (line.startsWith('data:') ? [line.slice(5).replace(/^ /, '')] : []));
      if (data.length > 0) yield data.join('\n');
    }
  }
}
