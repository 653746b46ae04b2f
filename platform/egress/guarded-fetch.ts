import type { Egress } from './egress.ts';

export interface FetchRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: unknown;
}

/** `fetch` for libraries, to URLs that customers choose. Only GET and POST of text; a redirect is returned, not followed. */
export type GuardedFetch = (url: string, request?: FetchRequest) => Promise<Response>;

const TIMEOUT_MS = 10_000;
/** The metadata and keys of an identity provider are a few kilobytes; federations publish larger documents. */
const MAX_RESPONSE_BYTES = 2 * 1024 * 1024;
/** A `Response` with these must not have a body. */
const BODILESS_STATUSES = [204, 205, 304];

/** A request that got no response. `code` says why: `blocked`, `timeout`, `ECONNREFUSED`, a TLS code … */
export class FetchFailure extends Error {
  readonly code: string;
  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Returns a `fetch` whose every request passes the egress guard. Libraries then can neither reach internal addresses nor
 * be redirected to them.
 */
export function createGuardedFetch(egress: Egress): GuardedFetch {
  return async (url, { method = 'GET', headers = {}, body } = {}) => {
    const limits = {
      headers,
      timeoutMs: TIMEOUT_MS,
      maxResponseBytes: MAX_RESPONSE_BYTES,
      retainBytes: MAX_RESPONSE_BYTES,
    };
    const result =
      method === 'POST'
        ? await egress.post(url, { ...limits, body: body === undefined || body === null ? '' : String(body) })
        : await egress.get(url, limits);
    if (result.kind === 'blocked') throw new FetchFailure('blocked', result.reason);
    if (result.kind === 'failed') throw new FetchFailure(result.error, `The request failed: ${result.error}`);
    const { status, contentType } = result;
    if (status < 200 || status > 599) throw new FetchFailure('invalid_response', `Status ${status}`);
    return new Response(BODILESS_STATUSES.includes(status) ? null : result.body, {
      status,
      headers: contentType === undefined ? {} : { 'content-type': contentType },
    });
  };
}
