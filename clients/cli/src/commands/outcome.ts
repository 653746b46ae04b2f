import { CliError, EXIT } from '../cli-error.ts';
import type { AgentEmail, AgentMessage, TimedOut } from '../sdk.ts';
import { TimeoutError } from '../sdk.ts';

const MAX_POLL_SECONDS = 300;
/** Of a message that did not arrive as it should. */
const FAILED = ['bounced', 'complained', 'rejected', 'failed', 'canceled', 'needs_attention'];

/**
 * Waits until it is known what happened to a message, or to a draft that waits for approval.
 *
 * @throws TimeoutError; CliError if it was not sent.
 */
export async function waitForOutcome(
  client: AgentEmail,
  id: string,
  timeoutSeconds: number,
): Promise<AgentMessage> {
  const startedAt = performance.now();
  const leftSeconds = () => Math.max(1, Math.ceil(timeoutSeconds - (performance.now() - startedAt) / 1_000));
  const messageId = id.startsWith('drf_') ? await waitUntilSent(client, id, leftSeconds()) : id;
  for (;;) {
    const seconds = Math.min(MAX_POLL_SECONDS, leftSeconds());
    const answer: AgentMessage | TimedOut = await client.messages.waitUntilSettled(messageId, {
      view: 'agent',
      timeout_seconds: seconds,
    });
    if (answer.object !== 'timeout') return answer as AgentMessage;
    if ((performance.now() - startedAt) / 1_000 >= timeoutSeconds)
      throw new TimeoutError(`The outcome of ${messageId} was not known within ${timeoutSeconds} s.`);
  }
}

async function waitUntilSent(client: AgentEmail, draftId: string, timeoutSeconds: number): Promise<string> {
  const { outcome, message_id, send_error, note } = await client.waitForDecision(draftId, { timeoutSeconds });
  if (message_id !== null) return message_id;
  throw new CliError(`The draft ${draftId} was not sent: ${outcome}. ${send_error ?? note ?? ''}`.trim(), {
    exitCode: EXIT.api,
    code: `draft_${outcome}`,
    fix:
      outcome === 'approved'
        ? 'It is scheduled. Wait for it again later.'
        : `Look at it: agent-email drafts show ${draftId}.`,
  });
}

/** An error for a message that did not arrive, so that scripts notice it. */
export function failureOf({ id, status, bounce }: AgentMessage): CliError | undefined {
  if (!FAILED.includes(status ?? '')) return undefined;
  return new CliError(`The message ${id} is ${status}.`, {
    exitCode: EXIT.api,
    code: `message_${status}`,
    fix: bounce?.next,
  });
}
