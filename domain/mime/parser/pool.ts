import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { StringDecoder } from 'node:string_decoder';
import { type Child, type ChildPool, createChildPool, type PoolUsage } from '../../../platform/child-pool.ts';
import { storableJson, storableText } from '../../../platform/database/storable.ts';
import { AppError } from '../../../platform/errors.ts';
import { type Frame, readFrames, sendFrame } from '../../../platform/frames.ts';
import type { StoredObject } from '../../../platform/storage.ts';
import type { FoundInvite } from '../invites/find-invites.ts';
import { type MessageFindings, NO_FINDINGS } from '../message-findings.ts';
import type { MessageText } from '../message-text.ts';
import { emptyParsedMail, type ParsedFile, type ParsedMail } from '../parse-mail.ts';
import { createPreview } from '../preview.ts';
import { type DoneFrame, type FileFrame, FRAME, type HeaderFrame } from './protocol.ts';

/** A parsed message with its text for agents. */
export interface ParsedInboundMail extends ParsedMail, MessageText, MessageFindings {
  /** The events of its calendars, at most ten. */
  invites: FoundInvite[];
  /** The content is a report on another message or an automatic reply, regardless of the header. */
  isAutomatic: boolean;
}

/** The result before anything is parsed, or if only the raw bytes can be stored. */
export function emptyInboundMail(parseError: string | null): ParsedInboundMail {
  return {
    ...emptyParsedMail(parseError),
    extractedText: '',
    preview: '',
    hiddenText: null,
    hasMismatchedLink: false,
    ...NO_FINDINGS,
    invites: [],
    isAutomatic: false,
  };
}

export interface ParseJobOptions {
  /** Organizations share the processes. */
  organizationId: string;
  /** Streams a file to storage. Called for one file at a time. */
  storeFile(
    index: number,
    content: Readable,
    contentType: string,
  ): Promise<{ key: string; stored: StoredObject }>;
}

/** Parses messages in child processes, so that a malicious message cannot block the worker or exhaust its memory. */
export interface ParserPool {
  /**
   * Never throws because of the content: if the parser fails or is killed, the result contains what the parser sent
   * before, and `parseError`.
   *
   * @throws errors of the source and of storage, and AppError `unavailable` if the machine was too busy to parse it.
   */
  parse(raw: Readable, options: ParseJobOptions): Promise<ParsedInboundMail>;
  usage(): PoolUsage;
  close(): Promise<void>;
}

export interface ParserPoolOptions {
  /** The script that runs `runParserChild` on its standard input and output. */
  entry: string;
  /** Maximum number of messages that are parsed concurrently. */
  processes: number;
  /**
   * Kills a parser that reads and writes nothing for this long. Waiting for storage does not count, nor does waiting for the
   * processor, see `minCpuMs`.
   */
  stallTimeoutMs?: number;
  /** Kills a parser that takes this long in total, including waits. Must be below the timeout of the activity. */
  totalTimeoutMs?: number;
  /** A parser that has had less processor time for its message is not killed for the time it took, but waits or is tried again. */
  minCpuMs?: number;
  maxResidentBytes?: number;
}

const STALL_TIMEOUT_MS = 30_000;
const TOTAL_TIMEOUT_MS = 240_000;
/**
 * A parser that has had less processor time than this was kept waiting by others: how long it took says nothing about the
 * message, which would be stored unread. Includes the start of the process, which takes seconds on a busy machine.
 */
const MIN_CPU_MS = 10_000;
const MAX_RESIDENT_BYTES = 256 * 1024 * 1024;
const MAX_JOBS_PER_PROCESS = 2_000;
/**
 * The heap limit is well below the memory limit, so that most oversized messages fail before the process is killed. The
 * semi-space is small because most children are idle.
 */
const NODE_OPTIONS = ['--max-old-space-size=192', '--max-semi-space-size=2', '--no-warnings'];

export function createParserPool(options: ParserPoolOptions): ParserPool {
  const pool: ChildPool = createChildPool({
    name: 'mail parsers',
    entry: options.entry,
    nodeOptions: NODE_OPTIONS,
    maxProcesses: options.processes,
    keepsSpare: true,
    maxJobsPerProcess: MAX_JOBS_PER_PROCESS,
    maxResidentBytes: options.maxResidentBytes ?? MAX_RESIDENT_BYTES,
  });
  const framesOf = new WeakMap<Child, AsyncGenerator<Frame, void>>();
  return {
    parse: (raw, jobOptions) =>
      pool.run(jobOptions.organizationId, async (child) => {
        const frames = framesOf.get(child) ?? readFrames(child.output);
        framesOf.set(child, frames);
        const limits = enforceTimeLimits(child, options);
        try {
          return await runJob({ child, frames, limits }, raw, jobOptions);
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
  /** Restarts the stall timeout. */
  recordProgress(): void;
  /** Suspends the stall timeout while the pool waits for its source or for storage. */
  awaitExternal<T>(work: Promise<T>): Promise<T>;
  /** @throws AppError `unavailable` if the parser was stopped although it could hardly work. */
  requireTime(): void;
  stop(): void;
}

function enforceTimeLimits(child: Child, options: ParserPoolOptions): TimeLimits {
  const {
    stallTimeoutMs = STALL_TIMEOUT_MS,
    totalTimeoutMs = TOTAL_TIMEOUT_MS,
    minCpuMs = MIN_CPU_MS,
  } = options;
  let externalWaits = 0;
  let isOver = false;
  let isStarved = false;
  const usedBefore = child.usedCpuMs();
  const hadLittleTime = async () => {
    const [before, now] = await Promise.all([usedBefore, child.usedCpuMs()]);
    return before !== undefined && now !== undefined && now - before < minCpuMs;
  };
  const stalled = setTimeout(async () => {
    if (externalWaits > 0 || (await hadLittleTime())) {
      if (!isOver) stalled.refresh();
    } else if (!isOver) child.kill(`no progress for ${stallTimeoutMs} ms`);
  }, stallTimeoutMs);
  const total = setTimeout(async () => {
    const waited = await hadLittleTime();
    if (isOver) return;
    isStarved = waited;
    child.kill(`it took more than ${totalTimeoutMs} ms`);
  }, totalTimeoutMs);
  return {
    recordProgress: () => void (isOver || stalled.refresh()),
    async awaitExternal(work) {
      externalWaits += 1;
      try {
        return await work;
      } finally {
        externalWaits -= 1;
        if (!isOver) stalled.refresh();
      }
    },
    requireTime() {
      if (isStarved)
        throw new AppError('unavailable', {
          detail: 'The machine was too busy, or storage too slow, to parse the message.',
          fix: 'Nothing: it is tried again.',
        });
    },
    stop() {
      isOver = true;
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

async function runJob(job: ParseJob, raw: Readable, options: ParseJobOptions): Promise<ParsedInboundMail> {
  const stop = new AbortController();
  const sent = sendSource(job, raw, stop.signal);
  // Rejects if the source fails, because the parser would otherwise wait for more bytes forever. Never resolves.
  const sourceFailed = sent.then(() => new Promise<never>(() => {}));
  const result = receiveResult(job, options);
  try {
    return await Promise.race([result, sourceFailed]);
  } catch (error) {
    job.child.kill('its job failed');
    await result.catch(() => {});
    throw error;
  } finally {
    stop.abort();
    raw.destroy();
    // The end frame must be written before the next message begins.
    await sent.catch(() => {});
  }
}

/** Sends the message to the parser, with backpressure. `receiveResult` notices if the parser dies. */
async function sendSource({ child, limits }: ParseJob, raw: Readable, stop: AbortSignal): Promise<void> {
  const source = raw[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const write = async (type: string, bytes?: Buffer) => {
    await sendFrame(child.input, type, bytes);
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

/** Collects the frames of the parser until it is done or has exited. @throws errors of storage. */
async function receiveResult(
  { child, frames, limits }: ParseJob,
  options: ParseJobOptions,
): Promise<ParsedInboundMail> {
  const parsed = emptyInboundMail(null);
  const texts = {
    [FRAME.text]: createTextCollector(),
    [FRAME.html]: createTextCollector(),
    [FRAME.extracted]: createTextCollector(),
  };
  let upload: FileUpload | undefined;
  for (;;) {
    const { value: frame } = await frames.next();
    limits.recordProgress();
    if (!frame) {
      await upload?.abort();
      limits.requireTime();
      const reason = child.killReason ?? 'its process ended';
      parsed.parseError ??= `The message could not be parsed: its parser was stopped, ${reason}.`;
      break;
    }
    const { type, payload } = frame;
    if (type === FRAME.header) Object.assign(parsed, JSON.parse(payload.toString()) as HeaderFrame);
    else if (type === FRAME.file)
      upload = startUpload(JSON.parse(payload.toString()) as FileFrame, parsed.attachments.length, options);
    else if (type === FRAME.fileBytes)
      await limits.awaitExternal(upload?.write(payload) ?? Promise.resolve());
    else if (type === FRAME.fileEnd && upload) {
      parsed.attachments.push({ ...upload.file, ...(await limits.awaitExternal(upload.end())) });
      upload = undefined;
    } else if (type === FRAME.text || type === FRAME.html || type === FRAME.extracted)
      texts[type].add(payload);
    else if (type === FRAME.done) {
      const { hasText, hasHtml, ...done } = storableJson(JSON.parse(payload.toString()) as DoneFrame);
      return {
        ...parsed,
        ...done,
        text: hasText ? texts[FRAME.text].toString() : null,
        html: hasHtml ? texts[FRAME.html].toString() : null,
        extractedText: storableText(texts[FRAME.extracted].toString()),
      };
    }
  }
  const text = texts[FRAME.text].toString() || null;
  const html = texts[FRAME.html].toString() || null;
  return { ...parsed, text, html, preview: storableText(createPreview(text, null)) };
}

function createTextCollector() {
  const decoder = new StringDecoder('utf8');
  let text = '';
  return {
    add(bytes: Buffer) {
      text += decoder.write(bytes);
    },
    toString: () => text + decoder.end(),
  };
}

interface FileUpload {
  file: ParsedFile;
  write(bytes: Buffer): Promise<void>;
  end(): Promise<{ storageKey: string; stored: StoredObject }>;
  /** Makes the upload fail, and waits until it has failed. */
  abort(): Promise<void>;
}

function startUpload(file: ParsedFile, index: number, { storeFile }: ParseJobOptions): FileUpload {
  const content = new PassThrough();
  // The reader may destroy the stream. The promise reports the failure.
  content.on('error', () => {});
  const storing = storeFile(index, content, file.contentType);
  storing.catch(() => {});
  return {
    file,
    async write(bytes) {
      if (content.write(bytes)) return;
      const controller = new AbortController();
      await Promise.race([once(content, 'drain', controller), storing]).finally(() => controller.abort());
    },
    async end() {
      content.end();
      const { key, stored } = await storing;
      return { storageKey: key, stored };
    },
    async abort() {
      content.destroy(new Error('The message ended before the end of the file'));
      await storing.catch(() => {});
    },
  };
}
