import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { type Child, type ChildPool, createChildPool, type PoolUsage } from '../../../platform/child-pool.ts';
import { storableText } from '../../../platform/database/storable.ts';
import { type Frame, readFrames, writeFrame } from '../../../platform/frames.ts';
import type { StoredObject } from '../../../platform/storage.ts';
import { emptyParsedMail, type ParsedFile, type ParsedMail } from '../parse-mail.ts';
import { type DoneFrame, type FileFrame, FRAME, type HeaderFrame } from './protocol.ts';

/** A mail as it was read, with what its writer wrote anew. */
export interface ParsedInboundMail extends ParsedMail {
  extractedText: string;
}

export interface ParseJobOptions {
  /** Streams a file to storage; called for one at a time. */
  storeFile(
    index: number,
    content: Readable,
    contentType: string,
  ): Promise<{ key: string; stored: StoredObject }>;
}

/** Reads mails, each in a process that can be killed: no mail takes the worker's time or memory with it. */
export interface ParserPool {
  /**
   * Never throws for what is in the mail: what its parser told before it failed or was killed is kept, with
   * `parseError`. Errors of the source and of storage are thrown.
   */
  parse(raw: Readable, options: ParseJobOptions): Promise<ParsedInboundMail>;
  usage(): PoolUsage;
  close(): Promise<void>;
}

export interface ParserPoolOptions {
  /** The script that serves `serveParser` on its standard input and output. */
  entry: string;
  /** Mails read at once. */
  processes: number;
  /** A parser that neither takes nor gives anything for so long is killed. Waiting for storage does not count. */
  stallTimeoutMs?: number;
  /** One that takes so long in all is killed, whatever it waits for. Below the time the activity has. */
  totalTimeoutMs?: number;
  maxResidentBytes?: number;
}

const STALL_TIMEOUT_MS = 30_000;
const TOTAL_TIMEOUT_MS = 240_000;
const MAX_RESIDENT_BYTES = 256 * 1024 * 1024;
const MAX_JOBS_PER_PROCESS = 2_000;
/** Its heap ends well below the limit, so that most mails that want too much fail by themselves; semi-space small, for it idles. */
const NODE_OPTIONS = ['--max-old-space-size=192', '--max-semi-space-size=2', '--no-warnings'];

export function createParserPool(options: ParserPoolOptions): ParserPool {
  const pool: ChildPool = createChildPool({
    entry: options.entry,
    nodeOptions: NODE_OPTIONS,
    maxProcesses: options.processes,
    maxJobsPerProcess: MAX_JOBS_PER_PROCESS,
    maxResidentBytes: options.maxResidentBytes ?? MAX_RESIDENT_BYTES,
  });
  const framesOf = new WeakMap<Child, AsyncGenerator<Frame, void>>();
  return {
    parse: (raw, readOptions) =>
      pool.run(async (child) => {
        const frames = framesOf.get(child) ?? readFrames(child.output);
        framesOf.set(child, frames);
        const limits = enforceTimeLimits(child, options);
        try {
          return await runJob({ child, frames, limits }, raw, readOptions);
        } finally {
          limits.stop();
          raw.destroy();
        }
      }),
    usage: () => pool.usage(),
    close: () => pool.close(),
  };
}

interface TimeLimits {
  /** Something moved. */
  recordProgress(): void;
  /** Waits for something that is not the parser's fault. */
  awaitExternal<T>(work: Promise<T>): Promise<T>;
  stop(): void;
}

function enforceTimeLimits(child: Child, options: ParserPoolOptions): TimeLimits {
  const { stallTimeoutMs: stalledMs = STALL_TIMEOUT_MS, totalTimeoutMs: totalMs = TOTAL_TIMEOUT_MS } =
    options;
  let outside = 0;
  const stalled = setTimeout(() => {
    if (outside > 0) stalled.refresh();
    else child.kill(`nothing moved for ${stalledMs} ms`);
  }, stalledMs);
  const total = setTimeout(() => child.kill(`it took more than ${totalMs} ms`), totalMs);
  return {
    recordProgress: () => void stalled.refresh(),
    async awaitExternal(work) {
      outside += 1;
      try {
        return await work;
      } finally {
        outside -= 1;
        stalled.refresh();
      }
    },
    stop() {
      clearTimeout(stalled);
      clearTimeout(total);
    },
  };
}

interface ParseJob {
  child: Child;
  frames: AsyncGenerator<Frame, void>;
  limits: TimeLimits;
}

async function runJob(
  reading: ParseJob,
  raw: Readable,
  options: ParseJobOptions,
): Promise<ParsedInboundMail> {
  const stop = new AbortController();
  const fed = sendSource(reading, raw, stop.signal);
  // A source that fails must end the wait for a parser that waits for its bytes.
  const broken = fed.then(() => new Promise<never>(() => {}));
  const answer = receiveResult(reading, options);
  try {
    return await Promise.race([answer, broken]);
  } catch (error) {
    reading.child.kill('its work failed');
    await answer.catch(() => {});
    throw error;
  } finally {
    stop.abort();
    raw.destroy();
    // The end of the mail is told before the next one begins.
    await fed.catch(() => {});
  }
}

/** Hands the mail to the parser as fast as it takes it. A parser that is gone shows in its answer. */
async function sendSource({ child, limits }: ParseJob, raw: Readable, stop: AbortSignal): Promise<void> {
  const source = raw[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const write = async (type: string, bytes?: Buffer) => {
    await writeFrame(child.input, type, bytes).catch(() => {});
    limits.recordProgress();
  };
  for (;;) {
    const next = await limits.awaitExternal(
      source.next().catch((error: unknown) => {
        if (stop.aborted) return { done: true, value: undefined } as const;
        throw error;
      }),
    );
    if (next.done || stop.aborted) break;
    await write(FRAME.raw, next.value);
  }
  await write(FRAME.end);
}

/** Puts together what the parser tells until it is done or gone. @throws what storage throws. */
async function receiveResult(
  { child, frames, limits }: ParseJob,
  options: ParseJobOptions,
): Promise<ParsedInboundMail> {
  const mail: ParsedInboundMail = { ...emptyParsedMail(null), extractedText: '' };
  const texts = {
    [FRAME.text]: createTextCollector(),
    [FRAME.html]: createTextCollector(),
    [FRAME.extracted]: createTextCollector(),
  };
  let file: FileUpload | undefined;
  for (;;) {
    const { value: frame } = await frames.next();
    limits.recordProgress();
    if (!frame) {
      await file?.abort();
      const reason = child.killReason ?? 'it ended by itself';
      mail.parseError ??= `The mail could not be read: its parser was stopped, ${reason}.`;
      break;
    }
    const { type, payload } = frame;
    if (type === FRAME.header) Object.assign(mail, JSON.parse(payload.toString()) as HeaderFrame);
    else if (type === FRAME.file)
      file = startUpload(JSON.parse(payload.toString()) as FileFrame, mail.attachments.length, options);
    else if (type === FRAME.fileBytes) await limits.awaitExternal(file?.write(payload) ?? Promise.resolve());
    else if (type === FRAME.fileEnd && file) {
      mail.attachments.push({ ...file.file, ...(await limits.awaitExternal(file.end())) });
      file = undefined;
    } else if (type === FRAME.text || type === FRAME.html || type === FRAME.extracted)
      texts[type].add(payload);
    else if (type === FRAME.done) {
      const done = JSON.parse(payload.toString()) as DoneFrame;
      return {
        ...mail,
        text: done.hasText ? texts[FRAME.text].whole() : null,
        html: done.hasHtml ? texts[FRAME.html].whole() : null,
        extractedText: storableText(texts[FRAME.extracted].whole()),
        parseError: done.parseError,
      };
    }
  }
  return {
    ...mail,
    text: texts[FRAME.text].whole() || null,
    html: texts[FRAME.html].whole() || null,
  };
}

function createTextCollector() {
  const decoder = new StringDecoder('utf8');
  let text = '';
  return {
    add(bytes: Buffer) {
      text += decoder.write(bytes);
    },
    whole: () => text + decoder.end(),
  };
}

interface FileUpload {
  file: ParsedFile;
  write(bytes: Buffer): Promise<void>;
  end(): Promise<{ storageKey: string; stored: StoredObject }>;
  /** Fails its upload, and waits for that. */
  abort(): Promise<void>;
}

function startUpload(facts: ParsedFile, index: number, { storeFile }: ParseJobOptions): FileUpload {
  const content = new PassThrough();
  // Whoever reads it may let go of it; what became of it is in the promise.
  content.on('error', () => {});
  const storing = storeFile(index, content, facts.contentType);
  storing.catch(() => {});
  return {
    file: facts,
    async write(bytes) {
      if (content.write(bytes)) return;
      const over = new AbortController();
      await Promise.race([once(content, 'drain', over), storing]).finally(() => over.abort());
    },
    async end() {
      content.end();
      const { key, stored } = await storing;
      return { storageKey: key, stored };
    },
    async abort() {
      content.destroy(new Error('The mail broke off'));
      await storing.catch(() => {});
    },
  };
}
