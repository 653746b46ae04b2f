/** As the SDK of Stripe, which checks it again. */
const TOLERANCE_SECONDS = 300;
/** During a rotation there is one for each secret. */
const MAX_PARTS = 16;
const MAX_CHARACTERS = 2_000;

/**
 * Whether the header Stripe-Signature can be one of Stripe, as far as that shows without the body: `t=…,v1=…`, with a time
 * that is not too old. Schemes other than `v1` may stand beside it.
 */
export function isPlausibleSignature(header: string | undefined, now = Date.now()): header is string {
  if (header === undefined || header.length > MAX_CHARACTERS) return false;
  const parts = header.split(',');
  if (parts.length > MAX_PARTS) return false;
  const [time] = parts.flatMap((part) => /^t=(\d{9,12})$/.exec(part)?.[1] ?? []);
  if (time === undefined || !parts.some((part) => /^v1=[0-9a-f]{64}$/.test(part))) return false;
  return Math.floor(now / 1_000) - Number(time) <= TOLERANCE_SECONDS;
}
