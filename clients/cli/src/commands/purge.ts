import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { timedOut, usageError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { type AgentEmail, APIError } from '../sdk.ts';
import { openSession } from '../session.ts';
import { visible } from '../terminal/visible.ts';
import { findInboxId } from './inbox-argument.ts';

export interface PurgeOptions {
  yes?: true;
  /** Seconds. */
  wait?: number;
}

const POLL_MS = 1_000;

/** Deletes an inbox with all its messages, which cannot be undone. */
export async function purge(context: Context, name: string, { yes, wait }: PurgeOptions): Promise<void> {
  const { output } = context;
  const { client } = await openSession(context);
  const id = await findInboxId(client, name);
  if (!yes) await confirm(context, name);
  await client.inboxes.delete(id, { purge: true });
  if (wait !== undefined) await waitUntilGone(client, id, wait);
  const status = wait === undefined ? 'purging' : 'purged';
  output.answer({ object: 'inbox', id, status }, () => [
    `${id} is ${status === 'purged' ? 'gone' : 'being purged'}.`,
  ]);
}

async function confirm({ stdin, stderr }: Context, name: string): Promise<void> {
  const fix = 'Give --yes to delete it without a question.';
  if (!stdin.isTTY) throw usageError(`This deletes ${name} and all its messages for good.`, fix);
  const lines = createInterface({ input: stdin, output: stderr });
  try {
    const typed = await lines.question(
      visible(`This deletes ${name} and all its messages for good. Type ${name} to go on: `),
    );
    if (typed.trim() !== name) throw usageError('Nothing was deleted.', fix);
  } finally {
    lines.close();
  }
}

/** The inbox answers 404 when everything of it is deleted. */
async function waitUntilGone(client: AgentEmail, id: string, timeoutSeconds: number): Promise<void> {
  const deadline = Date.now() + timeoutSeconds * 1_000;
  for (;;) {
    const isGone = await client.inboxes.get(id).then(
      () => false,
      (error: unknown) => {
        if (error instanceof APIError && error.status === 404) return true;
        throw error;
      },
    );
    if (isGone) return;
    if (Date.now() > deadline)
      throw timedOut(`${id} was not gone within ${timeoutSeconds} s.`, 'The purge goes on by itself.');
    await sleep(POLL_MS);
  }
}
