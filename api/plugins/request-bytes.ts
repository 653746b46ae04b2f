import { type Readable, Transform } from 'node:stream';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import {
  createFairShare,
  type Holder,
  networkHolder,
  type Release,
} from '../../platform/concurrency/fair-share.ts';
import { AppError } from '../../platform/errors.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * The body goes to storage while it arrives and is never whole in memory. `form`: the parser of forms reads the request
     * itself.
     */
    bodyIsStreamed?: true | 'form';
  }
  interface FastifyRequest {
    /** Of a body that is in memory or arriving; unset without one. */
    bodyClaim: BodyClaim | undefined;
  }
}

export interface RequestBytesOptions {
  /** A body that does not move for this long ends with 408. */
  stallTimeoutMs?: number | undefined;
}

const MIB = 1024 * 1024;
/** Bodies in memory. Together they fill the 256 MiB of a process. */
const SHARED_BYTES = 248 * MIB;
const RESERVED_BYTES = 8 * MIB;
const MAX_BYTES_PER_CREDENTIAL = 32 * MIB;
/** What the parts of one upload to storage occupy at most. */
const MAX_STREAMED_BYTES = 15 * MIB;
/** First claim for a body of unknown length; each further one doubles it. */
const FIRST_CHUNKED_BYTES = 65_536;
/** Smaller bodies arrive in a few reads. */
const UNPACED_BYTES = 131_072;
const STALL_TIMEOUT_MS = 10_000;
const CHECKS_PER_TIMEOUT = 10;
const RETRY_AFTER_SECONDS = 1;

interface BodyClaim {
  request: FastifyRequest;
  /** Reports why reading the body ends early. */
  fail: (error: AppError) => void;
  /** Set once reading has ended early. */
  failure?: AppError;
  releases: Release[];
  bytes: number;
  receivedBytes: number;
  movedAt: number;
}

/**
 * Limits the memory of request bodies by credential, organization and process, or by network before sign-in. A body beyond
 * its share is refused before it is read, and one that does not move ends with 408.
 */
export function installRequestBytes(
  app: FastifyInstance,
  { stallTimeoutMs = STALL_TIMEOUT_MS }: RequestBytesOptions = {},
): void {
  const shares = createFairShare({
    name: 'request bytes',
    capacity: SHARED_BYTES,
    reserve: RESERVED_BYTES,
  });
  const arriving = new Set<BodyClaim>();
  let checks: NodeJS.Timeout | undefined;
  app.decorateRequest('bodyClaim');

  function extend(claim: BodyClaim, bytes: number): void {
    const holders = holdersOf(claim.request);
    const reclaim = () => {
      if (!arriving.has(claim)) return false;
      fail(claim, tooManyBytes());
      return true;
    };
    const release = shares.tryAcquire({ holders, amount: bytes, reclaim });
    if (!release) throw tooManyBytes();
    claim.releases.push(release);
    claim.bytes += bytes;
  }

  function fail(claim: BodyClaim, error: AppError): void {
    arriving.delete(claim);
    claim.failure = error;
    claim.fail(error);
    releaseAll(claim);
  }

  function end({ bodyClaim }: FastifyRequest): void {
    if (!bodyClaim) return;
    arriving.delete(bodyClaim);
    releaseAll(bodyClaim);
  }

  function watch(claim: BodyClaim): void {
    arriving.add(claim);
    checks ??= setInterval(findStalled, stallTimeoutMs / CHECKS_PER_TIMEOUT).unref();
  }

  function findStalled(): void {
    const now = performance.now();
    for (const claim of arriving) {
      const { raw } = claim.request;
      const receivedBytes = raw.socket.bytesRead;
      // The process itself delays the client while it waits for storage.
      const isClientWaiting = raw.readableLength >= raw.readableHighWaterMark;
      if (raw.complete || raw.destroyed) arriving.delete(claim);
      else if (receivedBytes !== claim.receivedBytes || isClientWaiting) {
        claim.receivedBytes = receivedBytes;
        claim.movedAt = now;
      } else if (now - claim.movedAt >= stallTimeoutMs) fail(claim, stalled(stallTimeoutMs));
    }
    if (arriving.size > 0) return;
    clearInterval(checks);
    checks = undefined;
  }

  app.addHook('preParsing', async (request, reply, payload) => {
    const bytes = bodyBytes(request);
    if (bytes === 0) return payload;
    const { raw, routeOptions } = request;
    const claim: BodyClaim = {
      request,
      fail: (error) => raw.emit('error', error),
      releases: [],
      bytes: 0,
      receivedBytes: raw.socket.bytesRead,
      movedAt: performance.now(),
    };
    request.bodyClaim = claim;
    extend(claim, bytes ?? FIRST_CHUNKED_BYTES);
    reply.raw.once('close', () => end(request));
    // From now on its bytes are held until the response: they cannot be taken back.
    raw.once('end', () => arriving.delete(claim));
    // A form whose parser has not begun has no other listener.
    raw.on('error', () => {});
    watch(claim);
    const { bodyIsStreamed } = routeOptions.config;
    const isSmall = bytes !== undefined && bytes <= UNPACED_BYTES;
    if (bodyIsStreamed === 'form' || (isSmall && !bodyIsStreamed)) return payload;
    return passOn(claim, payload, bytes === undefined ? extend : () => {});
  });
  app.addHook('onError', async (request) => end(request));
  app.addHook('onClose', async () => clearInterval(checks));
}

/**
 * A copy of the body that can fail without its connection, so that the client gets the response. Claims what a body of
 * unknown length needs.
 */
function passOn(
  claim: BodyClaim,
  payload: Readable,
  extend: (claim: BodyClaim, bytes: number) => void,
): Readable {
  let receivedBytes = 0;
  const body = createPacedStream();
  // Its reader may have stopped.
  body.on('error', () => {});
  claim.fail = (error) => body.destroy(error);
  payload.once('error', (error) => body.destroy(error));
  payload.on('data', (chunk: Buffer) => {
    receivedBytes += chunk.length;
    if (receivedBytes <= claim.bytes || body.destroyed) return;
    try {
      extend(claim, claim.bytes);
    } catch (error) {
      claim.fail(error as AppError);
    }
  });
  payload.pipe(body);
  return body;
}

/**
 * Passes on one chunk in each turn of the event loop. Of a connection that sends at full speed a turn otherwise reads up to
 * 2 MiB, and a few dozen of them delay every other request.
 */
function createPacedStream(): Transform {
  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      setImmediate(done, null, chunk);
    },
  });
}

function releaseAll({ releases }: BodyClaim): void {
  for (const release of releases.splice(0)) release();
}

/** Undefined: the length is unknown. A body that is too long is refused by its length. */
function bodyBytes({ headers, routeOptions }: FastifyRequest): number | undefined {
  const length = headers['content-length'];
  const { bodyLimit = 0, config } = routeOptions;
  if (config.bodyIsStreamed && (length !== undefined || 'transfer-encoding' in headers))
    return Math.min(Number(length ?? bodyLimit), MAX_STREAMED_BYTES);
  if (length === undefined) return 'transfer-encoding' in headers ? undefined : 0;
  const bytes = Number(length);
  return bytes <= bodyLimit ? bytes : 0;
}

function holdersOf({ scope, person, staff, ip, routeOptions }: FastifyRequest): Holder[] {
  const max = MAX_BYTES_PER_CREDENTIAL;
  if (scope)
    return [
      { kind: 'credential', id: scope.actor.id, max },
      { kind: 'organization', id: scope.organizationId },
    ];
  const id = person?.userId ?? staff?.staffId;
  if (id !== undefined) return [{ kind: 'credential', id, max }];
  const isSigned = routeOptions.config.public === 'signed';
  // One mail server may hand over all mail of the service.
  return [{ ...networkHolder(ip), ...(isSigned ? {} : { max }) }];
}

function tooManyBytes(): AppError {
  return new AppError('rate_limited', {
    detail: `Too many bytes of request bodies are in progress: a credential may have ${MAX_BYTES_PER_CREDENTIAL / MIB} MiB at the same time, and less while others need the capacity.`,
    fix: `Wait for the responses of requests with large bodies, then repeat this one (see Retry-After).`,
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS), connection: 'close' },
  });
}

function stalled(timeoutMs: number): AppError {
  return new AppError('request_timeout', {
    detail: `No byte of the body arrived for ${timeoutMs / 1000} s.`,
    fix: 'Repeat the request, and send the whole body without a pause.',
    headers: { connection: 'close' },
  });
}
