import type { Egress, EgressResult } from '../../platform/egress/egress.ts';
import { signWebhook } from '../../platform/webhook-signature.ts';
import { serializeEnvelope } from '../events/envelope.ts';
import type { StartedAttempt } from './begin-attempt.ts';

const MAX_RESPONSE_BYTES = 65_536;
const RETAINED_RESPONSE_BYTES = 4_096;

/** Sends the signed request of an attempt. */
export function postEvent(
  { egress, timeoutMs }: { egress: Pick<Egress, 'post'>; timeoutMs: number },
  { endpoint, secrets, event }: StartedAttempt,
): Promise<EgressResult> {
  const body = serializeEnvelope(event);
  const timestampSeconds = Math.floor(Date.now() / 1000);
  return egress.post(endpoint.url, {
    headers: {
      'content-type': 'application/json',
      'user-agent': 'agent-email-webhooks/1',
      ...(event.test ? { 'x-service-test': 'true' } : {}),
      ...signWebhook({ ...secrets, eventId: event.id, timestampSeconds, body }),
    },
    body,
    timeoutMs,
    maxResponseBytes: MAX_RESPONSE_BYTES,
    retainBytes: RETAINED_RESPONSE_BYTES,
  });
}
