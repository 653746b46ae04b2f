import { type Database, runBeforeCommit, type Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';

/** What happened to one message of a batch. */
export type BatchResult<Sent> = { sent: Sent; refusal?: never } | { sent?: never; refusal: AppError };

export type SendBatch = ReturnType<typeof createSendBatch>;

export function createSendBatch({ database }: { database: Database }) {
  return {
    /**
     * Sends several messages from an inbox in one transaction: after a crash none of them exists, and the whole batch can be
     * repeated. Each is accepted or refused by itself, in a savepoint, exactly as if it was sent alone. A refusal keeps its
     * event.
     *
     * @param send the use-case of one message, which joins the transaction of its scope.
     * @returns the results, in the order of `items`.
     * @throws AppError `not_found` for the inbox; every error that is no refusal of a message. Then nothing was sent.
     */
    sendEach: <Item, Sent>(
      scope: Scope,
      { inboxId, items }: { inboxId: string; items: readonly Item[] },
      send: (scope: Scope, item: Item) => Promise<Sent>,
    ): Promise<BatchResult<Sent>[]> =>
      database.transaction(scope, async (transaction) => {
        await findInbox(transaction.db, scope, inboxId);
        const results: BatchResult<Sent>[] = [];
        for (const item of items) results.push(await sendOne(transaction, scope, (as) => send(as, item)));
        return results;
      }),
  };
}

async function sendOne<Sent>(
  transaction: Transaction,
  scope: Scope,
  send: (scope: Scope) => Promise<Sent>,
): Promise<BatchResult<Sent>> {
  try {
    return { sent: await inSavepoint(transaction, scope, send) };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    if (!isUsageLimitExceeded(error)) return { refusal: error };
    // The limit has rolled back the message, so the event is recorded by itself.
    const refusal = new AppError(error.code, {
      ...error,
      extensions: { ...error.extensions, rejection_reason: 'rate_limited' },
    });
    const refused = { ...scope, sendRefusal: { reason: 'rate_limited' as const, error: refusal } };
    await inSavepoint(transaction, refused, send).catch((reason: unknown) => {
      if (!isRefusal(reason)) throw reason;
    });
    return { refusal };
  }
}

/** What concerns this message, and not the service. */
const isRefusal = (error: unknown): error is AppError => error instanceof AppError && error.status < 500;

/** Undoes the work if it throws, unless its error commits the transaction. */
async function inSavepoint<Result>(
  outer: Transaction,
  scope: Scope,
  work: (scope: Scope) => Promise<Result>,
): Promise<Result> {
  const afterCommit: (() => void)[] = [];
  const outcome = await outer.savepoint(async (open): Promise<{ result: Result } | { error: AppError }> => {
    const beforeCommit: (() => Promise<void>)[] = [];
    const transaction: Transaction = Object.assign(open, {
      beforeCommit: (hook: () => Promise<void>) => beforeCommit.push(hook),
      afterCommit: (hook: () => void) => afterCommit.push(hook),
    });
    try {
      const result = await work({ ...scope, transaction });
      await runBeforeCommit(transaction, beforeCommit);
      return { result };
    } catch (error) {
      if (error instanceof AppError && error.commitsTransaction) return { error };
      throw error;
    }
  });
  for (const hook of afterCommit) outer.afterCommit(hook);
  if ('error' in outcome) throw outcome.error;
  return outcome.result;
}
