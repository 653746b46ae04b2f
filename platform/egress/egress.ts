import { lookup as dnsLookup } from 'node:dns/promises';
import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { isIPv6, type LookupFunction, connect as netConnect, type Socket } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import type { Config } from '../config.ts';
import { withSpan } from '../tracing/span.ts';
import { createAddressPolicy } from './address-policy.ts';
import { parseHttpDate } from './http-date.ts';
import { parseTarget, type Target, type TargetRules } from './target.ts';

/**
 * HTTP to URLs that customers choose. Packages that filter addresses (`request-filtering-agent`, `ssrf-req-filter`) limit
 * neither the total time nor the size of a response, and leave redirects and connection reuse to the HTTP client.
 */
export interface EgressRequest {
  headers: Record<string, string>;
  body: string;
  /** Total time for DNS lookup, connection, TLS, request and response. */
  timeoutMs: number;
  /** The connection is closed after this many bytes of the response body. */
  maxResponseBytes: number;
  /** Maximum number of bytes of the response body to return. */
  retainBytes: number;
}

export type EgressResult =
  /** The response headers arrived. If the body stalls or is cut off, `body` has the part received. */
  | {
      kind: 'response';
      status: number;
      body: string;
      /** Names in lowercase. Cookies are left out: they may be credentials of the receiver. */
      headers?: Record<string, string>;
      contentType?: string;
      retryAfterMs?: number;
      durationMs: number;
    }
  /** `error` is a code: `timeout`, `ECONNREFUSED`, `ENOTFOUND`, `ECONNRESET`, a TLS code … */
  | { kind: 'failed'; error: string; durationMs: number }
  /** The policy does not allow the target; retrying is pointless. */
  | { kind: 'blocked'; reason: string };

/** HTTP requests to URLs chosen by customers, without redirects or connection reuse. */
export interface Egress {
  /** Never throws: errors are part of the result. */
  post(url: string, post: EgressRequest): Promise<EgressResult>;
  get(url: string, get: Omit<EgressRequest, 'body'>): Promise<EgressResult>;
}

export interface EgressOptions {
  /** CIDRs that are allowed although they are not public. */
  allow: string[];
  /** Ports besides 80, 443, 8080 and 8443. */
  allowPorts: number[] | 'any';
  requireHttps: boolean;
  /** Resolves all addresses of a host name. */
  lookup?: (hostname: string) => Promise<string[]>;
  /** Certificate authorities (PEM) instead of the default ones. */
  certificateAuthorities?: string[];
}

/** @throws Error if `EGRESS_ALLOW_PORTS` is not a list of ports. */
export function readEgressOptions(
  config: Pick<Config, 'EGRESS_ALLOW' | 'EGRESS_ALLOW_PORTS' | 'NODE_ENV'>,
): EgressOptions {
  const ports = parseList(config.EGRESS_ALLOW_PORTS);
  if (!ports.every((port) => port === '*' || /^\d{1,5}$/.test(port))) {
    throw new Error(`EGRESS_ALLOW_PORTS is not a list of ports: ${config.EGRESS_ALLOW_PORTS}`);
  }
  return {
    allow: parseList(config.EGRESS_ALLOW),
    allowPorts: ports.includes('*') ? 'any' : ports.map(Number),
    requireHttps: config.NODE_ENV === 'production',
  };
}

function parseList(text: string | undefined): string[] {
  return (text ?? '').split(',').flatMap((entry) => entry.trim() || []);
}

/**
 * Returns a check for a URL that a customer configures: why the guard would refuse it whatever its name resolves to (a
 * literal address, the port, the scheme); null if it would not.
 */
export function createTargetCheck(options: EgressOptions): (url: string) => string | null {
  const rules: TargetRules = { ...options, addresses: createAddressPolicy(options.allow) };
  return (url) => {
    const target = parseTarget(url, rules);
    return 'refusal' in target ? target.refusal : null;
  };
}

class BlockedTargetError extends Error {}

export function createEgress(options: EgressOptions): Egress {
  const { lookup = systemLookup, certificateAuthorities } = options;
  const rules: TargetRules = { ...options, addresses: createAddressPolicy(options.allow) };

  /** All addresses must be allowed: a host with even one private address is blocked. */
  async function resolve({ hostname, literal }: Target): Promise<string[]> {
    const addresses = literal ? [hostname] : await lookup(hostname);
    if (addresses.length === 0) throw Object.assign(new Error('No address'), { code: 'ENOTFOUND' });
    for (const address of addresses) blockIfRefused(rules.addresses.findRefusal(address), literal);
    return addresses;
  }

  /** Checks the connected address before writing any byte, including the TLS handshake. */
  async function connect(target: Target, addresses: string[], deadline: AbortSignal): Promise<Socket> {
    const { hostname, port } = target;
    const socket = netConnect({ host: hostname, port, lookup: pinnedLookup(addresses) });
    // An error after `once` has settled must not crash the process.
    socket.on('error', () => {});
    try {
      await once(socket, 'connect', { signal: deadline });
      // Undefined if the connection was reset meanwhile: a failure that may be retried, not a blocked target.
      if (socket.remoteAddress === undefined) throw connectionLost();
      blockIfRefused(rules.addresses.findRefusal(socket.remoteAddress), target.literal);
      if (!target.secure) return socket;
      const secured = tlsConnect({
        socket,
        host: hostname,
        ...(target.literal ? {} : { servername: hostname }),
        ...(certificateAuthorities ? { ca: certificateAuthorities } : {}),
        ALPNProtocols: ['http/1.1'],
      });
      secured.on('error', () => {});
      await once(secured, 'secureConnect', { signal: deadline });
      return secured;
    } catch (error) {
      socket.destroy();
      throw error;
    }
  }

  async function send(method: 'GET' | 'POST', url: string, post: EgressRequest): Promise<EgressResult> {
    const target = parseTarget(url, rules);
    if ('refusal' in target) return { kind: 'blocked', reason: target.refusal };
    const startedAt = performance.now();
    const durationMs = () => Math.round(performance.now() - startedAt);
    const deadline = AbortSignal.timeout(post.timeoutMs);
    try {
      const addresses = await rejectAfter(resolve(target), deadline);
      const socket = await connect(target, addresses, deadline);
      const response = await exchange(socket, target, { method, ...post }, deadline);
      return { kind: 'response', ...response, durationMs: durationMs() };
    } catch (error) {
      if (error instanceof BlockedTargetError) return { kind: 'blocked', reason: error.message };
      return { kind: 'failed', error: errorCode(error, deadline), durationMs: durationMs() };
    }
  }

  return {
    post: (url, post) => traceRequest('POST', () => send('POST', url, post)),
    get: (url, get) => traceRequest('GET', () => send('GET', url, { ...get, body: '' })),
  };
}

/** The URL is no part of the span: customers put secrets into it. */
function traceRequest(method: string, request: () => Promise<EgressResult>): Promise<EgressResult> {
  return withSpan(
    { name: `HTTP ${method}`, kind: 'client', attributes: { 'http.request.method': method } },
    async (span) => {
      const result = await request();
      if (result.kind === 'response') span.setAttribute('http.response.status_code', result.status);
      else span.setAttribute('error.type', result.kind === 'failed' ? result.error : 'blocked');
      return result;
    },
  );
}

/** The reason names an address only if the URL did: customers see it, and must not learn what internal names resolve to. */
function blockIfRefused(refusal: string | null, isLiteral: boolean): void {
  if (refusal === null) return;
  throw new BlockedTargetError(isLiteral ? refusal : 'the host does not have a public address');
}

async function systemLookup(hostname: string): Promise<string[]> {
  const addresses = await dnsLookup(hostname, { all: true });
  return addresses.map(({ address }) => address);
}

/** Pins the connection to the addresses that were checked, against DNS rebinding. */
function pinnedLookup(addresses: string[]): LookupFunction {
  const found = addresses.map((address) => ({ address, family: isIPv6(address) ? 6 : 4 }));
  const [first = { address: '', family: 0 }] = found;
  return (_hostname, { all }, callback) => {
    if (all) callback(null, found);
    else callback(null, first.address, first.family);
  };
}

/** Rejects at the deadline. The work itself continues, because a DNS lookup cannot be canceled. */
async function rejectAfter<T>(work: Promise<T>, deadline: AbortSignal): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const expire = () => reject(deadline.reason);
  deadline.addEventListener('abort', expire, { once: true });
  try {
    return await Promise.race([work, promise]);
  } finally {
    deadline.removeEventListener('abort', expire);
  }
}

type EgressResponse = Pick<
  Extract<EgressResult, { kind: 'response' }>,
  'status' | 'body' | 'headers' | 'contentType' | 'retryAfterMs'
>;

/** Sends one request over a new connection: a reused connection would outlive the check of its address. */
async function exchange(
  socket: Socket,
  { url }: Target,
  post: EgressRequest & { method: 'GET' | 'POST' },
  deadline: AbortSignal,
): Promise<EgressResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const request = httpRequest({
    createConnection: () => socket,
    method: post.method,
    path: `${url.pathname}${url.search}`,
    headers: {
      ...post.headers,
      host: url.host,
      ...(post.method === 'POST' ? { 'content-length': Buffer.byteLength(post.body) } : {}),
      connection: 'close',
    },
    signal: deadline,
  });
  request.on('response', resolve);
  request.on('error', reject);
  // If the receiver switches protocols (101), the request closes without a response or an error.
  request.on('close', () => reject(connectionLost()));
  request.end(post.body);
  try {
    const response = await promise;
    const retryAfterMs = parseRetryAfter(response.headers['retry-after']);
    const contentType = response.headers['content-type'];
    return {
      status: response.statusCode ?? 0,
      body: await readBody(response, post),
      headers: readHeaders(response),
      ...(contentType === undefined ? {} : { contentType }),
      ...(retryAfterMs === null ? {} : { retryAfterMs }),
    };
  } finally {
    socket.destroy();
  }
}

function connectionLost(): Error {
  return Object.assign(new Error('The connection was lost'), { code: 'ECONNRESET' });
}

async function readBody(
  response: IncomingMessage,
  { maxResponseBytes, retainBytes }: EgressRequest,
): Promise<string> {
  const chunks: Buffer[] = [];
  let receivedBytes = 0;
  try {
    for await (const chunk of response) {
      if (receivedBytes < retainBytes) chunks.push(chunk.subarray(0, retainBytes - receivedBytes));
      receivedBytes += chunk.length;
      if (receivedBytes >= maxResponseBytes) break;
    }
  } catch {
    // Only the status decides the outcome. The body is informational, so an incomplete one is fine.
  }
  // PostgreSQL cannot store NUL in text.
  return Buffer.concat(chunks).toString('utf8').replaceAll('\u0000', '\ufffd');
}

/** Node.js limits the headers of a response to 16 KiB, and replaces bytes outside of latin1. */
function readHeaders({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || name === 'set-cookie' ? [] : [[name, [value].flat().join(', ')]],
    ),
  );
}

/** Parses seconds or a date (RFC 9110 section 10.2.3) to milliseconds from now; null if it is neither. */
function parseRetryAfter(value: string | undefined): number | null {
  if (value === undefined) return null;
  if (/^\d+$/.test(value)) return Number(value) * 1_000;
  const at = parseHttpDate(value);
  return at === null ? null : Math.max(0, at - Date.now());
}

function errorCode(error: unknown, deadline: AbortSignal): string {
  if (deadline.aborted) return 'timeout';
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'unknown';
}
