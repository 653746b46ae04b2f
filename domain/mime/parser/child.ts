import { once } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { readFrames, writeFrame } from '../../../platform/frames.ts';
import { type ParsedFile, parseMail } from '../parse-mail.ts';
import { extractReply } from '../quotes/extract-reply.ts';
import { type DoneFrame, FRAME } from './protocol.ts';

/** So much of a body is written at a time. */
const CHUNK_BYTES = 256 * 1024;

/**
 * Reads one mail after the other, until the input ends.
 *
 * @throws Error where something else than a mail is to blame; its process then ends, and another takes over.
 */
export async function runParserChild(input: Readable, output: Writable): Promise<void> {
  let mail: { raw: PassThrough; read: Promise<void> } | undefined;
  for await (const { type, payload } of readFrames(input)) {
    if (!mail) {
      const raw = new PassThrough();
      mail = { raw, read: parseAndSend(raw, output) };
      // Awaited below; until then it is nobody's unhandled rejection.
      mail.read.catch(() => {});
    }
    // Of a mail that is read no further the rest is passed over.
    if (type === FRAME.raw && !mail.raw.destroyed && !mail.raw.write(payload)) await waitForDrain(mail.raw);
    if (type !== FRAME.end) continue;
    mail.raw.end();
    await mail.read;
    mail = undefined;
  }
}

async function waitForDrain(stream: PassThrough): Promise<void> {
  const over = new AbortController();
  await Promise.race([once(stream, 'drain', over), once(stream, 'close', over)]);
  over.abort();
}

async function parseAndSend(raw: Readable, output: Writable): Promise<void> {
  const send = (type: string, value: unknown) => writeFrame(output, type, Buffer.from(JSON.stringify(value)));
  // One frame after the other: the header is told from within an event.
  let sent = Promise.resolve();
  const { text, html, parseError } = await parseMail(raw, {
    onHeader(header) {
      sent = send(FRAME.header, header);
    },
    async consumeFile(file: ParsedFile, content) {
      await sent;
      await send(FRAME.file, file);
      for await (const chunk of content as AsyncIterable<Buffer>)
        await writeFrame(output, FRAME.fileBytes, chunk);
      await writeFrame(output, FRAME.fileEnd);
    },
  });
  await sent;
  await sendText(output, FRAME.text, text);
  await sendText(output, FRAME.html, html);
  await sendText(output, FRAME.extracted, extractReply({ text, html }));
  const done: DoneFrame = { parseError, hasText: text !== null, hasHtml: html !== null };
  await send(FRAME.done, done);
}

async function sendText(output: Writable, type: string, text: string | null): Promise<void> {
  const bytes = Buffer.from(text ?? '');
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
    await writeFrame(output, type, bytes.subarray(at, at + CHUNK_BYTES));
}
