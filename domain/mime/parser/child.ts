import { once } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { readFrames, writeFrame } from '../../../platform/frames.ts';
import { type ParsedFile, parseMail } from '../parse-mail.ts';
import { extractReply } from '../quotes/extract-reply.ts';
import { type DoneFrame, FRAME } from './protocol.ts';

/** So much of a body is written at a time. */
const PIECE_BYTES = 256 * 1024;

/**
 * Reads one mail after the other, until the input ends.
 *
 * @throws Error where something else than a mail is to blame; its process then ends, and another takes over.
 */
export async function serveParser(input: Readable, output: Writable): Promise<void> {
  let mail: { raw: PassThrough; read: Promise<void> } | undefined;
  for await (const { type, payload } of readFrames(input)) {
    if (!mail) {
      const raw = new PassThrough();
      mail = { raw, read: readMail(raw, output) };
      // Awaited below; until then it is nobody's unhandled rejection.
      mail.read.catch(() => {});
    }
    // Of a mail that is read no further the rest is passed over.
    if (type === FRAME.raw && !mail.raw.destroyed && !mail.raw.write(payload)) await roomIn(mail.raw);
    if (type !== FRAME.end) continue;
    mail.raw.end();
    await mail.read;
    mail = undefined;
  }
}

async function roomIn(stream: PassThrough): Promise<void> {
  const over = new AbortController();
  await Promise.race([once(stream, 'drain', over), once(stream, 'close', over)]);
  over.abort();
}

async function readMail(raw: Readable, output: Writable): Promise<void> {
  const say = (type: string, value: unknown) => writeFrame(output, type, Buffer.from(JSON.stringify(value)));
  // One frame after the other: the header is told from within an event.
  let said = Promise.resolve();
  const { text, html, parseError } = await parseMail(raw, {
    onHeader(header) {
      said = say(FRAME.header, header);
    },
    async takeFile(file: ParsedFile, content) {
      await said;
      await say(FRAME.file, file);
      for await (const chunk of content as AsyncIterable<Buffer>)
        await writeFrame(output, FRAME.fileBytes, chunk);
      await writeFrame(output, FRAME.fileEnd);
    },
  });
  await said;
  await sayText(output, FRAME.text, text);
  await sayText(output, FRAME.html, html);
  await sayText(output, FRAME.extracted, extractReply({ text, html }));
  const done: DoneFrame = { parseError, hasText: text !== null, hasHtml: html !== null };
  await say(FRAME.done, done);
}

async function sayText(output: Writable, type: string, text: string | null): Promise<void> {
  const bytes = Buffer.from(text ?? '');
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    await writeFrame(output, type, bytes.subarray(at, at + PIECE_BYTES));
}
