import { createHmac, timingSafeEqual } from 'node:crypto';
import { WebhookVerificationError } from './errors.ts';
import type { Event } from './generated/types.ts';

/** As `fetch`, Node's servers and frameworks have them. */
export type WebhookHeaders = Headers | Record<string, string | readonly string[] | undefined>;

export interface UnwrapOptions {
  /** How far the time of the signature may be off. Default: 300. */
  toleranceSeconds?: number | undefined;
}

const SECRET_PREFIX = 'whsec_';
const DEFAULT_TOLERANCE_SECONDS = 300;

/** For servers that get webhooks; it needs no client. */
export const webhooks = { unwrap };

/**
 * Verifies a webhook and returns its event. Events come at least once: keep the ids of those that you have handled.
 *
 * @param body the raw body, before any parsing.
 * @param secret of the endpoint (`whsec_…`). While you replace it, pass both: one match is enough.
 * @throws TypeError without a secret, for example if a variable of the environment is not set.
 * @throws WebhookVerificationError if the service did not sign the body, or not recently.
 */
function unwrap(
  body: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | undefined | readonly (string | undefined)[],
  { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS }: UnwrapOptions = {},
): Event {
  const secrets = [secret].flat().filter((one): one is string => one !== undefined && one !== '');
  if (secrets.length === 0)
    throw new TypeError(
      'unwrap needs the secret of the webhook endpoint (whsec_…): it is empty or undefined.',
    );
  const bytes = typeof body === 'string' ? Buffer.from(body) : new Uint8Array(body);
  const get = reader(headers);
  const hasStandard = get('webhook-signature') !== '';
  const timestamp = get(hasStandard ? 'webhook-timestamp' : 'x-service-timestamp');
  if (!isRecent(timestamp, toleranceSeconds))
    throw new WebhookVerificationError(
      'The webhook has no timestamp, or one that is too far from the time of this computer.',
    );
  const isGenuine = hasStandard
    ? secrets.some((one) => matchesStandard(one, get, bytes))
    : secrets.some((one) => matchesOwn(one, get, bytes));
  if (!isGenuine)
    throw new WebhookVerificationError('No signature of the webhook matches its body and the secret.');
  return parse(bytes);
}

/** @returns the value of a header; empty if it is absent. */
function reader(headers: WebhookHeaders): (name: string) => string {
  if (headers instanceof Headers) return (name) => headers.get(name) ?? '';
  const values = new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  return (name) => [values.get(name) ?? ''].flat().join(' ');
}

function isRecent(timestamp: string, toleranceSeconds: number): boolean {
  return /^\d{1,12}$/.test(timestamp) && Math.abs(Date.now() / 1000 - Number(timestamp)) <= toleranceSeconds;
}

/** https://www.standardwebhooks.com: several signatures during a rotation, separated by spaces. */
function matchesStandard(secret: string, get: (name: string) => string, body: Uint8Array): boolean {
  const key = Buffer.from(
    secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret,
    'base64',
  );
  const signed = `${get('webhook-id')}.${get('webhook-timestamp')}.`;
  const expected = createHmac('sha256', key).update(signed).update(body).digest();
  return get('webhook-signature')
    .split(' ')
    .filter((signature) => signature.startsWith('v1,'))
    .some((signature) => isEqual(Buffer.from(signature.slice(3), 'base64'), expected));
}

function matchesOwn(secret: string, get: (name: string) => string, body: Uint8Array): boolean {
  const expected = createHmac('sha256', secret)
    .update(`${get('x-service-timestamp')}.`)
    .update(body)
    .digest();
  return ['x-service-signature', 'x-service-signature-previous'].some((name) =>
    isEqual(Buffer.from(get(name), 'hex'), expected),
  );
}

const isEqual = (given: Uint8Array, expected: Uint8Array): boolean =>
  given.length === expected.length && timingSafeEqual(given, expected);

function parse(bytes: Uint8Array): Event {
  try {
    return JSON.parse(new TextDecoder().decode(bytes)) as Event;
  } catch (cause) {
    throw new WebhookVerificationError('The body of the webhook is not JSON.', { cause });
  }
}
