import type { Event } from '../sdk.ts';
import { VERSION } from '../version.ts';
import { sign } from './sign.ts';

/** As long as the service waits for a webhook endpoint. */
const TIMEOUT_MS = 15_000;

export interface Forwarded {
  /** Null: there was no answer. */
  status: number | null;
  /** Why there was none. */
  error: string | null;
  duration_ms: number;
}

/** Posts an event as the service posts a webhook. A failure is an answer too: nothing is repeated. */
export async function forward(
  event: Event,
  { url, secret }: { url: string; secret: string },
): Promise<Forwarded> {
  const body = JSON.stringify(event);
  const timestampSeconds = Math.floor(Date.now() / 1_000);
  const startedAt = performance.now();
  const since = () => Math.round(performance.now() - startedAt);
  try {
    const response = await fetch(url, {
      method: 'POST',
      redirect: 'manual',
      headers: {
        'content-type': 'application/json',
        'user-agent': `agent-email-cli/${VERSION}`,
        ...sign({ secret, eventId: event.id, timestampSeconds, body }),
      },
      body,
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.body?.cancel();
    return { status: response.status, error: null, duration_ms: since() };
  } catch (error) {
    return { status: null, error: reasonOf(error), duration_ms: since() };
  }
}

function reasonOf(error: unknown): string {
  const { name, message, cause } = error as Error & { cause?: NodeJS.ErrnoException };
  if (name === 'TimeoutError') return `no answer within ${TIMEOUT_MS / 1_000} s`;
  return cause?.code ?? cause?.message ?? message;
}
