/** As in Stripe's SDK, which checks the time again. */
const TOLERANCE_SECONDS = 300;
/** During the rotation of a secret there is one signature for each secret. */
const MAX_PARTS = 16;
const MAX_CHARACTERS = 2_000;

/**
 * Whether the header Stripe-Signature may be valid, as far as can be seen without the body: `t=…,v1=…`, with a time that
 * is not too old. It may contain schemes other than `v1`.
 */
export function isPlausibleSignature(header: string | undefined, now = Date.now()): header is string {
  if (header === undefined || header.length > MAX_CHARACTERS) return false;
  const parts = header.split(',');
  if (parts.length > MAX_PARTS) return false;
  const [time] = parts.flatMap((part) => /^t=(\d{9,12})$/.exec(part)?.[1] ?? []);
  if (time === undefined || !parts.some((part) => /^v1=[0-9a-f]{64}$/.test(part))) return false;
  return Math.floor(now / 1_000) - Number(time) <= TOLERANCE_SECONDS;
}
