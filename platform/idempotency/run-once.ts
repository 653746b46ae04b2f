import { setTimeout as delay } from 'node:timers/promises';
import { sha256 } from '../crypto.ts';
import type { Database, TenantScope } from '../database/database.ts';
import { AppError } from '../errors.ts';
import { createIdempotencyId, type IdempotencyStore } from './idempotency-store.ts';

/** One submission of a form. The same content with the same key is the same submission. */
export interface Submission {
  /** Of the page that shows the form: what it does, and with what. */
  path: string;
  credentialId: string;
  /** Of the form as it was shown. */
  key: string;
  content: unknown;
}

/** Returns the id of what the work created. */
export type RunOnce = <Scope extends TenantScope>(
  scope: Scope,
  submission: Submission,
  work: (scope: Scope) => Promise<string>,
) => Promise<string>;

/** A browser that submits twice shows only the answer to the second request, so that one waits for the first. */
const MAX_WAIT_MS = 10_000;
const RETRY_MS = 100;

/**
 * Runs the work of a form once, however often the browser submits it: a repeated submission returns what the first one
 * created. Both are stored in one transaction. A rejection is not stored, so that the person can correct the form.
 *
 * The function throws what `work` throws; AppError `request_in_progress` if another submission takes too long, and `not_found`
 * if what the first one created was deleted.
 */
export function createRunOnce({ database, store }: { database: Database; store: IdempotencyStore }): RunOnce {
  return async (scope, { path, credentialId, key, content }, work) => {
    const requestHash = sha256(JSON.stringify(content));
    const id = createIdempotencyId({
      organizationId: scope.organizationId,
      credentialId,
      method: 'POST',
      path,
      // A person who goes back, changes the form and submits it again wants something new.
      key: `${key}/${requestHash.toString('hex')}`,
    });
    const tryOnce = () =>
      database.transaction(scope, async (transaction) => {
        if (!(await store.claim(transaction, id))) return undefined;
        const stored = await store.find(transaction, id, { requestHash });
        if (stored === 'deleted' || stored === 'different-request') throw wasDeleted();
        if (stored) return (JSON.parse(stored.body) as { id: string }).id;
        const created = await work({ ...scope, transaction });
        const response = {
          status: 303,
          contentType: 'application/json',
          body: JSON.stringify({ id: created }),
        };
        await store.save(transaction, { id, organizationId: scope.organizationId, requestHash, response });
        return created;
      });
    for (let waitedMs = 0; waitedMs <= MAX_WAIT_MS; waitedMs += RETRY_MS) {
      const created = await tryOnce();
      if (created !== undefined) return created;
      await delay(RETRY_MS);
    }
    throw new AppError('request_in_progress', {
      detail: 'This form is still being submitted.',
      fix: 'Wait a moment, then look whether it took effect before you submit it again.',
    });
  };
}

function wasDeleted(): AppError {
  return new AppError('not_found', {
    detail: 'The form was submitted before, and what it created was deleted.',
    fix: 'Nothing was repeated. Open the form again to create it once more.',
  });
}
