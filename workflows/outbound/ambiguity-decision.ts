import type { AmbiguityDecision, ResolveAmbiguousInput } from './send-message.contract.ts';

/**
 * Reads the argument of `resolveAmbiguous`, which operators type in the Temporal UI.
 *
 * @param now of the run, in milliseconds.
 * @throws Error that says what is expected.
 */
export function readDecision(input: ResolveAmbiguousInput | undefined, now: number): AmbiguityDecision {
  const { resolution, recipient, decidedAt } =
    typeof input === 'object' && input !== null
      ? input
      : { resolution: input, recipient: undefined, decidedAt: undefined };
  if (resolution !== 'sent' && resolution !== 'resend')
    throw new Error('The resolution must be "sent" or "resend", or {"resolution": …, "recipient": number}.');
  if (recipient !== undefined && !(Number.isInteger(recipient) && recipient >= 0))
    throw new Error('The recipient must be a number from 0.');
  const isTime = typeof decidedAt === 'string' && !Number.isNaN(Date.parse(decidedAt));
  return {
    resolution,
    decidedAt: isTime ? decidedAt : new Date(now).toISOString(),
    ...(recipient === undefined ? {} : { recipient }),
  };
}
