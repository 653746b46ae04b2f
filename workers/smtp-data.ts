import { type Readable, Transform } from 'node:stream';
import type { RefusalReason } from '../domain/refusals/refusal.entity.ts';
import { type DataRate, DEFAULT_DATA_RATE, watchDataRate } from './data-rate.ts';

/** An error reply to an SMTP command. smtp-server sends `responseCode` and `message` to the client. */
export class SmtpError extends Error {
  readonly responseCode: number;
  /** For the organization's list of refusals, and for the metrics. */
  readonly reason: RefusalReason;

  /** @param text starts with the enhanced status code (RFC 3463). */
  constructor(responseCode: number, text: string, reason: RefusalReason) {
    super(text);
    this.name = 'SmtpError';
    this.responseCode = responseCode;
    this.reason = reason;
  }
}

/** The client disconnected before the end of its message. This is not an error of the service. */
export class ClientDisconnectedError extends Error {
  constructor(cause: Error) {
    super('client disconnected within a message', { cause });
    this.name = 'ClientDisconnectedError';
  }
}

/** RFC 5321 section 6.3 recommends at least 100. Real paths are far shorter, and each pass of a loop costs storage. */
const MAX_RECEIVED_FIELDS = 50;

export interface DataOptions {
  maxSizeBytes: number;
  /** A client that sends more slowly is disconnected. */
  dataRate?: DataRate;
  /**
   * Called once the message turns out to be large. The client waits until it resolves.
   *
   * @param ended is aborted when the transaction is over.
   * @returns releases what was acquired.
   */
  acquireLargeSlot(ended: AbortSignal): Promise<() => void>;
}

/**
 * Passes the data of an SMTP transaction to `consume`. If that fails, reads the data to its end before it throws, because
 * the client would take a reply before the final dot for the reply to another command.
 *
 * @throws SmtpError if the message breaks a limit or arrives too slowly (421); ClientDisconnectedError; what `consume` throws.
 */
export async function receiveData<T>(
  data: Readable,
  { maxSizeBytes, dataRate = DEFAULT_DATA_RATE, acquireLargeSlot }: DataOptions,
  consume: (message: Readable) => Promise<T>,
): Promise<T> {
  const ended = new AbortController();
  let release = () => {};
  let failure: ClientDisconnectedError | SmtpError | undefined;
  const inspection = inspectMessage(maxSizeBytes, async () => {
    release = await acquireLargeSlot(ended.signal);
    // The slot may have become free in the moment in which the transaction ended.
    if (ended.signal.aborted) release();
  });
  // A client that disconnects must fail the upload, not complete it.
  data.on('error', (error) => {
    failure = error instanceof SmtpError ? error : new ClientDisconnectedError(error);
    ended.abort();
    inspection.stream.destroy(error);
  });
  // `consume` handles errors while it reads. After that, an unhandled error would end the process.
  inspection.stream.on('error', () => {});
  watchDataRate(data, dataRate, {
    isClientWaiting: () =>
      data.isPaused() || (!inspection.stream.destroyed && inspection.stream.writableLength > 0),
    isLarge: () => inspection.isLarge,
    // smtp-server delays the reply until the stream has ended or is destroyed.
    onTooSlow: () =>
      data.destroy(new SmtpError(421, '4.4.2 Data arrives too slowly, closing connection', 'too_slow')),
  });
  data.pipe(inspection.stream);
  try {
    return await consume(inspection.stream);
  } catch (error) {
    // Storage does not report why its source failed, and the client may disconnect after storage failed.
    const reason = inspection.refusal ?? failure ?? error;
    data.unpipe();
    ended.abort();
    release();
    await drain(data, maxSizeBytes);
    throw data.errored instanceof SmtpError ? data.errored : reason;
  } finally {
    ended.abort();
    release();
  }
}

/** Passes a message through unchanged, and fails as soon as the message breaks a limit. */
interface MessageInspection {
  stream: Transform;
  readonly isLarge: boolean;
  /** Set if the stream failed because of the message. */
  readonly refusal: SmtpError | undefined;
}

/** Smaller messages need little more memory than the buffers of the socket. */
const LARGE_MESSAGE_BYTES = 1024 * 1024;

/** @param admitLarge called once the message turns out to be large. The client waits until it resolves. */
function inspectMessage(maxSizeBytes: number, admitLarge: () => Promise<void>): MessageInspection {
  const countReceived = createReceivedCounter();
  let sizeBytes = 0;
  let refusal: SmtpError | undefined;
  const refuse = (reason: SmtpError) => {
    refusal = reason;
    return reason;
  };
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const wasLarge = sizeBytes > LARGE_MESSAGE_BYTES;
      sizeBytes += chunk.length;
      if (sizeBytes > maxSizeBytes) {
        done(
          refuse(
            new SmtpError(552, `5.3.4 Message is larger than ${maxSizeBytes} bytes`, 'message_too_large'),
          ),
        );
      } else if (countReceived(chunk) > MAX_RECEIVED_FIELDS) {
        done(refuse(new SmtpError(554, '5.4.6 Too many hops, mail loop detected', 'too_many_hops')));
      } else if (sizeBytes > LARGE_MESSAGE_BYTES && !wasLarge) {
        admitLarge().then(
          () => done(null, chunk),
          () =>
            done(refuse(new SmtpError(452, '4.3.1 Too many large messages, try again later', 'too_busy'))),
        );
      } else done(null, chunk);
    },
  });
  return {
    stream,
    get isLarge() {
      return sizeBytes > LARGE_MESSAGE_BYTES;
    },
    get refusal() {
      return refusal;
    },
  };
}

/** Counts `Received` fields of the header. Buffers only the start of an incomplete line. */
function createReceivedCounter(): (chunk: Buffer) => number {
  const NAME = 'received:';
  let lineStart = '';
  let inHeader = true;
  let count = 0;
  return (chunk) => {
    if (!inHeader) return count;
    const lines = (lineStart + chunk.toString('latin1')).split('\n');
    lineStart = lines.pop()?.slice(0, NAME.length) ?? '';
    for (const line of lines) {
      if (line === '' || line === '\r') {
        inHeader = false;
        break;
      }
      if (line.slice(0, NAME.length).toLowerCase() === NAME) count += 1;
    }
    return count;
  };
}

/**
 * Discards the rest of a rejected message: the client would misinterpret a reply before the final dot.
 * Destroys the stream after `maxBytes` more.
 */
async function drain(stream: Readable, maxBytes: number): Promise<void> {
  if (stream.readableEnded || stream.destroyed) return;
  let drainedBytes = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  stream.on('data', (chunk: Buffer) => {
    drainedBytes += chunk.length;
    if (drainedBytes > maxBytes)
      stream.destroy(new SmtpError(421, '4.3.2 Message does not end', 'message_too_large'));
  });
  stream.once('end', resolve);
  stream.once('close', resolve);
  stream.resume();
  await promise;
}
