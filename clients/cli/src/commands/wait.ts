import { usageError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { openSession } from '../session.ts';
import { findInboxId } from './inbox-argument.ts';
import { messageLines } from './message-lines.ts';
import { failureOf, waitForOutcome } from './outcome.ts';

export interface WaitOptions {
  inbox?: string;
  code?: true;
  from?: string;
  subject?: string;
  since?: string;
  /** Seconds. */
  timeout: number;
}

/** Waits for the next message, for a code, or for the outcome of a message or draft. */
export async function wait(context: Context, id: string | undefined, options: WaitOptions): Promise<void> {
  const { output, globals } = context;
  const { code, from, subject, since, timeout } = options;
  if (id !== undefined && /^(?:msg|drf)_/.test(id)) {
    if (code || from || subject || since || options.inbox)
      throw usageError(`The outcome of ${id} takes no filters.`, 'Leave out all but --timeout.');
    const { client } = await openSession(context);
    const outcome = await waitForOutcome(client, id, timeout);
    output.answer(outcome, () => messageLines(outcome));
    const failure = failureOf(outcome);
    if (failure) throw failure;
    return;
  }
  const { client } = await openSession(context);
  const place = id?.startsWith('thr_') ? id : await findInboxId(client, id ?? options.inbox);
  const filters = { from, subject, since };
  if (!code) {
    const message = await client.waitForMessage(
      place,
      { ...filters, view: 'agent' },
      { timeoutSeconds: timeout },
    );
    return output.answer(message, () => messageLines(message));
  }
  const found = await client.waitForCode(place, filters, { timeoutSeconds: timeout });
  if (globals.json) return output.answer(found, () => []);
  output.bare(found.value);
}
