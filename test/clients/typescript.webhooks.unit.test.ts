import { createHmac } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { Webhook } from 'standardwebhooks';
import { Webhook as SvixWebhook } from 'svix';
import {
  type WebhookHeaders,
  WebhookVerificationError,
  webhooks,
} from '../../clients/typescript/src/index.ts';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const OTHER = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD';
const BODY = '{"id":"evt_1","type":"message.received","data":{"subject":"Grüße ✉️"}}';
const ID = 'evt_1';

const now = () => Math.floor(Date.now() / 1000);

function standardHeaders(secrets: string[], timestamp = now(), body = BODY): Record<string, string> {
  const signatures = secrets.map((secret) => new Webhook(secret).sign(ID, new Date(timestamp * 1000), body));
  return {
    'webhook-id': ID,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}

function ownHeaders(secret: string, previous?: string, timestamp = now()): Record<string, string> {
  const sign = (key: string) => createHmac('sha256', key).update(`${timestamp}.${BODY}`).digest('hex');
  return {
    'x-service-timestamp': String(timestamp),
    'x-service-signature': sign(secret),
    ...(previous ? { 'x-service-signature-previous': sign(previous) } : {}),
  };
}

const isRefused = (headers: WebhookHeaders, { body = BODY, secret = SECRET as string | string[] } = {}) => {
  try {
    webhooks.unwrap(body, headers, secret);
    return false;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return true;
    throw error;
  }
};

describe('Standard Webhooks', () => {
  test('the published example', () => {
    const headers = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    };
    const body = '{"test": 2432232314}';
    const lenient = { toleranceSeconds: 1e10 };
    expect(webhooks.unwrap(body, headers, 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', lenient)).toEqual({
      test: 2432232314,
    });
    expect(() => webhooks.unwrap(body, headers, OTHER, lenient)).toThrow(WebhookVerificationError);
  });

  test.each([
    ['text', BODY],
    ['bytes', Buffer.from(BODY)],
    ['an ArrayBuffer', new TextEncoder().encode(BODY).buffer as ArrayBuffer],
  ])('what the library of the standard signs, as %s', (_, body) => {
    expect(webhooks.unwrap(body, standardHeaders([SECRET]), SECRET)).toEqual(JSON.parse(BODY));
  });

  test("Svix's library reads the same headers", () => {
    const headers = standardHeaders([SECRET]);
    expect(new SvixWebhook(SECRET).verify(BODY, headers)).toEqual(webhooks.unwrap(BODY, headers, SECRET));
  });

  test('a secret without its prefix', () => {
    expect(isRefused(standardHeaders([SECRET]), { secret: SECRET.replace('whsec_', '') })).toBe(false);
  });

  test('headers as fetch, Node and frameworks have them', () => {
    const headers = standardHeaders([SECRET]);
    const shouted = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
    );
    const listed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    for (const given of [new Headers(headers), shouted, listed]) expect(isRefused(given)).toBe(false);
  });

  test('one of several signatures and one of several secrets are enough', () => {
    expect(isRefused(standardHeaders([OTHER, SECRET]))).toBe(false);
    expect(isRefused(standardHeaders([OTHER]), { secret: [SECRET, OTHER] })).toBe(false);
    expect(isRefused(standardHeaders([OTHER]))).toBe(true);
    const { 'webhook-signature': signature, ...headers } = standardHeaders([SECRET]);
    expect(isRefused({ ...headers, 'webhook-signature': `v1a,AAAA v2,BBBB ${signature}` })).toBe(false);
    expect(isRefused({ ...headers, 'webhook-signature': `${signature}`.replace('v1,', 'v2,') })).toBe(true);
  });

  test.each([
    ['another body', { body: BODY.replace('evt_1', 'evt_2') }, {}],
    ['another id', {}, { 'webhook-id': 'evt_2' }],
    ['another time', {}, { 'webhook-timestamp': String(now() - 1) }],
    ['no time', {}, { 'webhook-timestamp': '' }],
    ['a time with more than digits', {}, { 'webhook-timestamp': `${now()}.0` }],
    ['an empty signature', {}, { 'webhook-signature': 'v1,' }],
    [
      'half a signature',
      {},
      { 'webhook-signature': standardHeaders([SECRET])['webhook-signature']?.slice(0, 20) },
    ],
  ])('%s is refused', (_, given, headers) => {
    expect(isRefused({ ...standardHeaders([SECRET]), ...headers }, given)).toBe(true);
  });

  test.each([-301, 301])('a signature %i seconds off is refused', (seconds) => {
    expect(isRefused(standardHeaders([SECRET], now() + seconds))).toBe(true);
    const headers = standardHeaders([SECRET], now() + seconds);
    expect(webhooks.unwrap(BODY, headers, SECRET, { toleranceSeconds: 400 })).toMatchObject({ id: ID });
  });
});

describe("the service's own headers", () => {
  test('the secret, or during a rotation the previous one', () => {
    expect(isRefused(ownHeaders(SECRET))).toBe(false);
    expect(isRefused(ownHeaders(SECRET, OTHER), { secret: OTHER })).toBe(false);
    expect(isRefused(ownHeaders(SECRET), { secret: OTHER })).toBe(true);
    expect(isRefused(ownHeaders(SECRET, undefined, now() - 301))).toBe(true);
    expect(isRefused({ ...ownHeaders(SECRET), 'x-service-signature': '' })).toBe(true);
  });
});

test('without headers, and without a secret', () => {
  expect(isRefused({})).toBe(true);
  const headers = standardHeaders([SECRET]);
  expect(() => webhooks.unwrap(BODY, headers, '')).toThrow(TypeError);
  expect(() => webhooks.unwrap(BODY, headers, [])).toThrow(TypeError);
  expect(() => webhooks.unwrap(BODY, headers, undefined)).toThrow('it is empty or undefined');
  expect(() => webhooks.unwrap(BODY, headers, [undefined])).toThrow(TypeError);
});

test('an event of an unknown type is returned', () => {
  const body = '{"id":"evt_1","type":"inbox.painted","data":{"colour":"green"},"new":1}';
  expect(webhooks.unwrap(body, standardHeaders([SECRET], now(), body), SECRET)).toEqual(JSON.parse(body));
});
