import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Stripe from 'stripe';
import { type FormBody, parseForm, textOf } from './form-body.ts';
import { createLedger, type Ledger, type Price, StandInError, type StripeEventRecord } from './ledger.ts';
import { OPERATIONS } from './operations.ts';
import { answerPage } from './pages.ts';

export interface StripeStandIn {
  readonly url: string;
  /** The account, for tests that act on it directly. */
  readonly ledger: Ledger;
  /** Requests that arrived, such as `POST /v1/customers`. */
  readonly requests: string[];
  /** Runs before each answer of the API: may wait, or throw a {@link StandInError}. */
  intercept: (operation: string, id: string) => Promise<void> | void;
  close(): Promise<void>;
}

export interface StandInOptions {
  port: number;
  prices: Price[];
  /** Gets every event, in order, until it answers 2xx. Undefined: events are only collected. */
  webhook?: { url: string; secret: string };
  /** Keeps the account over restarts. */
  file?: string;
}

/** Prices of the stand-in for each tier. */
export const STAND_IN_PRICES: Price[] = [
  { id: 'price_developer', unit_amount: 2_000, currency: 'usd' },
  { id: 'price_business', unit_amount: 20_000, currency: 'usd' },
  { id: 'price_enterprise', unit_amount: 200_000, currency: 'usd' },
  { id: 'price_messages', unit_amount: 1, currency: 'usd', meter: 'mtr_messages_sent' },
];

/** A local server that answers the Stripe SDK from memory, for tests and `npm start`. */
export async function startStripeStandIn({
  port,
  prices,
  webhook,
  file,
}: StandInOptions): Promise<StripeStandIn> {
  const requests: string[] = [];
  const remembered = new Map<string, { result: object; at: number }>();
  const ledger = createLedger({ prices, now: Math.floor(Date.now() / 1_000), origin: '' });
  if (file !== undefined) restoreLedger(ledger, file);
  const standIn: StripeStandIn = {
    url: '',
    ledger,
    requests,
    intercept: () => undefined,
    async close() {
      delivery.stop();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  const server = createServer((request, response) => {
    void answer(request, response).catch((error: unknown) => {
      response.writeHead(500).end(String(error));
    });
  });
  const delivery = createDelivery(webhook);
  ledger.onEvent = delivery.add;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://stand-in');
    const method = request.method ?? 'GET';
    const body = parseForm(await readText(request));
    if (file !== undefined && method !== 'GET') response.once('finish', () => saveLedger(ledger, file));
    if (pathname.startsWith('/v1/')) {
      const key = request.headers['idempotency-key'];
      return answerApi(response, { method, pathname, query: searchParams, body, key: key?.toString() });
    }
    const page = answerPage(ledger, { method, path: pathname, query: searchParams, body });
    if (!page) response.writeHead(404).end('Not found');
    else if (page.redirectTo !== undefined) response.writeHead(303, { location: page.redirectTo }).end();
    else response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(page.html);
  }

  async function answerApi(
    response: ServerResponse,
    call: {
      method: string;
      pathname: string;
      query: URLSearchParams;
      body: FormBody;
      key: string | undefined;
    },
  ): Promise<void> {
    const { operation, id } = findOperation(call.method, call.pathname);
    requests.push(operation);
    try {
      const run = OPERATIONS[operation];
      if (!run) throw new StandInError(404, `Unrecognized request URL (${operation}).`);
      // The answer is built before it is held back: a slow answer is an old one.
      const key = call.method === 'POST' ? call.key : undefined;
      const earlier = key === undefined ? undefined : remembered.get(key);
      const known = earlier && ledger.now - earlier.at < IDEMPOTENCY_LIFETIME_S ? earlier.result : undefined;
      const subject = id || textOf(call.body.identifier) || '';
      await standIn.intercept(`before ${operation}`, subject);
      const result = known ?? run({ ledger, id, body: call.body, query: call.query });
      const text = JSON.stringify(result);
      if (key !== undefined && !known) remembered.set(key, { result, at: ledger.now });
      await standIn.intercept(operation, subject);
      response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    } catch (error) {
      if (!(error instanceof StandInError)) throw error;
      const { status, message, type, code } = error;
      response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify({ error: { type, message, ...(code ? { code } : {}) } }));
    }
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  ledger.origin = url;
  return Object.assign(standIn, { url });
}

/** Stripe forgets the keys of requests after a day. */
const IDEMPOTENCY_LIFETIME_S = 86_400;

/** `POST /v1/invoices/in_1/pay` is the operation `POST /v1/invoices/:id/pay`. */
function findOperation(method: string, pathname: string): { operation: string; id: string } {
  if (Object.hasOwn(OPERATIONS, `${method} ${pathname}`))
    return { operation: `${method} ${pathname}`, id: '' };
  const [, id = ''] = /\/((?:cus|cs|sub|in|sub_sched|mtr)_[A-Za-z0-9_]+)/.exec(pathname) ?? [];
  return { operation: `${method} ${pathname.replace(id, ':id')}`, id };
}

/** The header with which Stripe signs an event, made by the SDK. */
export function signEvent(payload: string, secret: string, timestamp?: number): string {
  return new Stripe('sk_test_stand_in').webhooks.generateTestHeaderString({
    payload,
    secret,
    ...(timestamp === undefined ? {} : { timestamp }),
  });
}

const SAVED = ['customers', 'sessions', 'subscriptions', 'invoices', 'schedules', 'meterEvents'] as const;

function saveLedger(ledger: Ledger, file: string): void {
  const maps = SAVED.map((name) => [name, [...ledger[name]]]);
  writeFileSync(file, JSON.stringify({ ...Object.fromEntries(maps), now: ledger.now }));
}

function restoreLedger(ledger: Ledger, file: string): void {
  if (!existsSync(file)) return;
  const { now, ...saved } = JSON.parse(readFileSync(file, 'utf8'));
  for (const name of SAVED) for (const [id, object] of saved[name] ?? []) ledger[name].set(id, object);
  // Written before there were metered prices.
  for (const owner of [...ledger.sessions.values(), ...ledger.subscriptions.values()])
    owner.meteredPrices ??= [];
  // A clock that was moved ahead stays ahead.
  ledger.now = Math.max(ledger.now, now);
}

const REDELIVER_AFTER_MS = 2_000;

function createDelivery(webhook: StandInOptions['webhook']) {
  const waiting: StripeEventRecord[] = [];
  const stopping = new AbortController();
  let isRunning = false;
  const run = async (target: NonNullable<typeof webhook>) => {
    for (let event = waiting[0]; event && !stopping.signal.aborted; event = waiting[0]) {
      const payload = JSON.stringify(event);
      const response = await fetch(target.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'stripe-signature': signEvent(payload, target.secret),
        },
        body: payload,
        signal: AbortSignal.any([stopping.signal, AbortSignal.timeout(10_000)]),
      }).catch(() => undefined);
      if (response?.ok) waiting.shift();
      else await new Promise((resolve) => setTimeout(resolve, REDELIVER_AFTER_MS).unref());
    }
    isRunning = false;
  };
  return {
    add(event: StripeEventRecord): void {
      if (!webhook) return;
      waiting.push(event);
      if (isRunning) return;
      isRunning = true;
      void run(webhook);
    },
    stop: () => stopping.abort(),
  };
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
