import { Answer, type Received } from './answer.ts';
import { APIError, ConnectionError, TimeoutError } from './errors.ts';
import { EventStream, type EventStreamParams } from './event-stream.ts';
import { type FileInput, toForm } from './files.ts';
import { ERRORS_BY_CODE } from './generated/errors.ts';
import type { Problem } from './generated/types.ts';
import { type List, Page, PageAnswer } from './pages.ts';
import { backOffMs, retryDelayMs, sleep } from './retries.ts';
import { VERSION } from './version.ts';

export interface RequestOptions {
  /** For what would be done twice otherwise. Default: a new one for each call, which its retries repeat. */
  idempotencyKey?: string | undefined;
  /** Ends the call, and the pauses between its attempts. */
  signal?: AbortSignal | undefined;
  /** For each attempt. */
  timeoutMs?: number | undefined;
  maxRetries?: number | undefined;
  /** The environment, for a credential that is not bound to one. */
  envId?: string | undefined;
  headers?: Record<string, string> | undefined;
}

export interface Settings {
  apiKey: string;
  baseUrl: string;
  fetch: typeof fetch;
  timeoutMs: number;
  maxRetries: number;
  envId: string | undefined;
}

/** A call of an operation. */
export interface Call {
  verb: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  path: string;
  /** Which of `params` stand in the query or a header, with their names there. The others are the body. */
  query?: Record<string, string>;
  headers?: Record<string, string>;
  body?: boolean;
  file?: FileInput;
  idempotent?: boolean;
  params?: object | undefined;
  options?: RequestOptions | undefined;
}

interface Request {
  url: string;
  init: { method: string; headers: Record<string, string>; body?: string | FormData };
  timeoutMs: number;
  maxRetries: number;
  signal: AbortSignal | undefined;
  /** Its first attempt may have been done although no answer came, and a second one would fail for that. */
  isConditional: boolean;
}

/** A waiting call answers when its time is up; this much later it is considered lost. */
const WAIT_MARGIN_MS = 15_000;

/** Fills ids into a path. An id that would change the path is refused. */
export function path(texts: TemplateStringsArray, ...ids: string[]): string {
  return ids.reduce((filled, id, index) => {
    if (typeof id !== 'string' || id === '' || id === '.' || id === '..')
      throw new TypeError(`${JSON.stringify(id)} is not an id (of ${texts[0]}…)`);
    return `${filled}${encodeURIComponent(id)}${texts[index + 1] ?? ''}`;
  }, texts[0] ?? '');
}

/** Sends requests, and repeats those that failed for a while. */
export class Requester {
  readonly #settings: Settings;

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  call(call: Call): Answer<never> {
    return new Answer(this.#send<never>(call));
  }

  list(call: Call): PageAnswer<never> {
    const fetchPage = async (cursor: string): Promise<Page<never>> => {
      const params = { ...call.params, cursor };
      return new Page((await this.#send<List<never>>({ ...call, params })).data, fetchPage);
    };
    return new PageAnswer(this.#send<List<never>>(call), fetchPage);
  }

  stream(streamPath: string, params: EventStreamParams = {}, options: RequestOptions = {}): EventStream {
    const { last_event_id, after, types, ...query } = params;
    const call = { verb: 'GET' as const, path: streamPath, options };
    const given = { ...query, ...(types ? { types: [types].flat().join() } : {}) };
    const url = this.#url(streamPath, Object.entries(given));
    return new EventStream({
      lastEventId: last_event_id ?? after ?? undefined,
      signal: options.signal,
      maxRetries: options.maxRetries ?? this.#settings.maxRetries,
      connect: async (position, signal) => {
        const headers: Record<string, string> = { ...this.#headers(call), accept: 'text/event-stream' };
        if (position !== undefined) headers['last-event-id'] = position;
        const response = await this.#fetch(url, { method: 'GET', headers, signal });
        if (response.ok) return response;
        throw toError(response, await response.text());
      },
    });
  }

  async #send<T>(call: Call): Promise<Received<T>> {
    const request = this.#prepare(call);
    let isUnclear = false;
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#attempt<T>(request);
      } catch (error) {
        if (isUnclear && isGone(call, error)) return emptyAnswer<T>(error);
        isUnclear ||= !(error instanceof APIError) || error.status >= 500;
        const delayMs = delayAfter(error, attempt);
        if (delayMs === null || attempt >= request.maxRetries || (isUnclear && request.isConditional))
          throw error;
        await sleep(delayMs, request.signal);
      }
    }
  }

  /** @throws APIError, ConnectionError, TimeoutError, or the reason of the caller's signal. */
  async #attempt<T>({ url, init, timeoutMs, signal }: Request): Promise<Received<T>> {
    signal?.throwIfAborted();
    const controller = new AbortController();
    const abort = () => controller.abort();
    signal?.addEventListener('abort', abort, { once: true });
    let hasTimedOut = false;
    const timer = setTimeout(() => {
      hasTimedOut = true;
      controller.abort();
    }, timeoutMs);
    try {
      const response = await this.#fetch(url, { ...init, signal: controller.signal });
      // Within the timeout, and a connection that breaks here broke the request.
      return readAnswer<T>(response, await response.text());
    } catch (cause) {
      signal?.throwIfAborted();
      if (hasTimedOut)
        throw new TimeoutError(`${init.method} ${url} had no answer after ${timeoutMs} ms.`, { cause });
      if (cause instanceof APIError || cause instanceof ConnectionError) throw cause;
      throw new ConnectionError(`${init.method} ${url} had no answer: ${describe(cause)}.`, { cause });
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener('abort', abort);
    }
  }

  #fetch(url: string, init: RequestInit): Promise<Response> {
    const { fetch } = this.#settings;
    // A redirect is an error: followed, it could take the request elsewhere.
    return fetch(url, { ...init, redirect: 'manual' });
  }

  #prepare(call: Call): Request {
    const { options = {}, verb } = call;
    const { query, headers, body } = splitParams(call);
    const { timeoutMs, maxRetries } = this.#settings;
    const waitMs =
      Number((call.params as { timeout_seconds?: number } | undefined)?.timeout_seconds ?? 0) * 1000;
    const init: Request['init'] = { method: verb, headers: { ...this.#headers(call), ...headers } };
    if (call.file) init.body = toForm(call.file);
    else if (body) {
      init.body = JSON.stringify(body);
      init.headers['content-type'] = 'application/json';
    }
    return {
      url: this.#url(call.path, query),
      init,
      timeoutMs: options.timeoutMs ?? Math.max(timeoutMs, waitMs > 0 ? waitMs + WAIT_MARGIN_MS : 0),
      maxRetries: options.maxRetries ?? maxRetries,
      signal: options.signal,
      isConditional: !call.idempotent && 'if-match' in init.headers,
    };
  }

  #headers({ idempotent, options = {}, verb, path: target }: Call): Record<string, string> {
    const { apiKey, envId = this.#settings.envId } = { ...this.#settings, ...options };
    const { idempotencyKey, headers = {} } = options;
    if (idempotencyKey !== undefined && !idempotent)
      throw new TypeError(`${verb} ${target} takes no idempotencyKey: repeating it changes nothing.`);
    return {
      accept: 'application/json',
      'user-agent': `agent-email-typescript/${VERSION}`,
      ...Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      authorization: `Bearer ${apiKey}`,
      ...(envId === undefined ? {} : { 'x-env-id': envId }),
      ...(idempotent ? { 'idempotency-key': idempotencyKey ?? crypto.randomUUID() } : {}),
    };
  }

  #url(target: string, query: [string, unknown][]): string {
    const url = new URL(this.#settings.baseUrl + target);
    for (const [name, value] of query)
      if (value !== undefined && value !== null) url.searchParams.set(name, String(value));
    return url.href;
  }
}

function splitParams({ params = {}, query = {}, headers = {}, body }: Call) {
  const entries = Object.entries(params).filter(([, value]) => value !== undefined);
  const inBody = entries.filter(([name]) => !(name in query) && !(name in headers) && name !== 'cursor');
  return {
    query: entries.flatMap(([name, value]): [string, unknown][] =>
      query[name] ? [[query[name], value]] : [],
    ),
    headers: Object.fromEntries(
      entries.flatMap(([name, value]) => (headers[name] ? [[headers[name], String(value)]] : [])),
    ),
    body: body ? Object.fromEntries(inBody) : null,
  };
}

function readAnswer<T>(response: Response, text: string): Received<T> {
  if (!response.ok) throw toError(response, text);
  const requestId = response.headers.get('x-request-id');
  const type = response.headers.get('content-type') ?? '';
  if (response.status === 204 || text === '') return { data: undefined as T, response, requestId };
  if (!/[/+]json\b/.test(type)) {
    if (/^text\/(plain|event-stream)\b/.test(type)) return { data: text as T, response, requestId };
    throw new ConnectionError(
      `The answer is ${type || 'of no type'}, not JSON. Is baseUrl the address of the service?`,
    );
  }
  try {
    return { data: JSON.parse(text) as T, response, requestId };
  } catch (cause) {
    throw new ConnectionError('The answer is not valid JSON.', { cause });
  }
}

export function toError(response: Response, text: string): APIError {
  const location = response.headers.get('location');
  if (location && response.status < 400)
    return new APIError({
      response,
      problem: null,
      text: `It redirects to ${location}: set baseUrl to the right address.`,
    });
  const problem = readProblem(text);
  const Class = ERRORS_BY_CODE.get(problem?.code ?? '') ?? APIError;
  return new Class({ response, problem, text });
}

function readProblem(text: string): Problem | null {
  try {
    const value = JSON.parse(text) as Partial<Problem> | null;
    return typeof value?.code === 'string' ? (value as Problem) : null;
  } catch {
    return null;
  }
}

/** Null if the error is final. */
function delayAfter(error: unknown, attempt: number): number | null {
  if (error instanceof APIError) return retryDelayMs(error, attempt);
  return error instanceof ConnectionError || error instanceof TimeoutError ? backOffMs(attempt) : null;
}

/** What an attempt without an answer deleted is not found by the next one. */
const isGone = ({ verb }: Call, error: unknown): error is APIError =>
  verb === 'DELETE' && error instanceof APIError && error.code === 'not_found';

function emptyAnswer<T>({ requestId, headers, status }: APIError): Received<T> {
  return { data: undefined as T, response: new Response(null, { status, headers }), requestId };
}

function describe(error: unknown): string {
  const { message, cause } = error as Error & { cause?: { code?: string; message?: string } };
  return cause ? `${message} (${cause.code ?? cause.message})` : message;
}
