import { once } from 'node:events';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import { readFrames, writeFrame } from '../../../platform/frames.ts';
import {
  type FoundInvite,
  findInvites,
  isCalendar,
  MAX_CALENDAR_BYTES,
  MAX_INVITES,
} from '../invites/find-invites.ts';
import { readMessage } from '../message-findings.ts';
import { type ParsedFile, parseMail } from '../parse-mail.ts';
import { type DoneFrame, FRAME } from './protocol.ts';

/** Bytes of a body per frame. */
const CHUNK_BYTES = 256 * 1024;
/** A report is at the start of a message, before the returned message. */
const MAX_REPORT_BYTES = 256 * 1024;

export interface ParserChildOptions {
  /** Whether the message that starts with these bytes is a report on another message or an automatic reply. Never throws. */
  isAutomatic(start: Buffer): boolean;
}

/**
 * Parses one message after another until the input ends.
 *
 * @throws Error for failures that are not caused by a message. The process then exits, and the pool starts another.
 */
export async function runParserChild(
  input: Readable,
  output: Writable,
  { isAutomatic }: ParserChildOptions,
): Promise<void> {
  let job: { raw: PassThrough; start: Buffer[]; startBytes: number; done: Promise<void> } | undefined;
  for await (const { type, payload } of readFrames(input)) {
    if (!job) {
      const raw = new PassThrough();
      const start: Buffer[] = [];
      const readAutomatic = () => isAutomatic(Buffer.concat(start).subarray(0, MAX_REPORT_BYTES));
      job = { raw, start, startBytes: 0, done: parseAndSend(raw, output, readAutomatic) };
      // It is awaited below. Until then, a rejection must not be reported as unhandled.
      job.done.catch(() => {});
    }
    if (type === FRAME.raw && job.startBytes < MAX_REPORT_BYTES) {
      job.start.push(payload);
      job.startBytes += payload.length;
    }
    // The rest of the message is ignored after the parser has stopped.
    if (type === FRAME.raw && !job.raw.destroyed && !job.raw.write(payload)) await waitForDrain(job.raw);
    if (type !== FRAME.end) continue;
    job.raw.end();
    await job.done;
    job = undefined;
  }
}

async function waitForDrain(stream: PassThrough): Promise<void> {
  const controller = new AbortController();
  await Promise.race([once(stream, 'drain', controller), once(stream, 'close', controller)]);
  controller.abort();
}

async function parseAndSend(raw: Readable, output: Writable, readAutomatic: () => boolean): Promise<void> {
  const send = (type: string, value: unknown) => writeFrame(output, type, Buffer.from(JSON.stringify(value)));
  // Frames must not be interleaved, and the header is sent by an event handler.
  let sent = Promise.resolve();
  const invites: FoundInvite[] = [];
  const { text, html, parseError, ...header } = await parseMail(raw, {
    onHeader(header) {
      sent = send(FRAME.header, header);
    },
    async consumeFile(file: ParsedFile, content) {
      await sent;
      await send(FRAME.file, file);
      const calendar = isCalendar(file) && invites.length < MAX_INVITES ? createCollector() : undefined;
      for await (const chunk of content as AsyncIterable<Buffer>) {
        calendar?.add(chunk);
        await writeFrame(output, FRAME.fileBytes, chunk);
      }
      await writeFrame(output, FRAME.fileEnd);
      if (calendar) invites.push(...findInvites(calendar.text()).slice(0, MAX_INVITES - invites.length));
    },
  });
  await sent;
  await sendText(output, FRAME.text, text);
  await sendText(output, FRAME.html, html);
  const { extractedText, ...read } = readMessage(header, { text, html });
  await sendText(output, FRAME.extracted, extractedText);
  const bodies = { hasText: text !== null, hasHtml: html !== null };
  const done: DoneFrame = { parseError, ...bodies, isAutomatic: readAutomatic(), ...read, invites };
  await send(FRAME.done, done);
}

/** Collects the start of a file. */
function createCollector() {
  const chunks: Buffer[] = [];
  let bytes = 0;
  return {
    add(chunk: Buffer) {
      if (bytes < MAX_CALENDAR_BYTES) chunks.push(chunk.subarray(0, MAX_CALENDAR_BYTES - bytes));
      bytes += chunk.length;
    },
    text: () => Buffer.concat(chunks).toString(),
  };
}

async function sendText(output: Writable, type: string, text: string | null): Promise<void> {
  const bytes = Buffer.from(text ?? '');
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES)
    await writeFrame(output, type, bytes.subarray(at, at + CHUNK_BYTES));
}
