import { setTimeout as pause } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Logger } from 'pino';
import type { Database } from '../database/database.ts';
import type { Storage } from '../storage.ts';
import { StorageError } from '../storage-error.ts';

/**
 * A counter in the database, with a copy in the bucket that is written after each commit. If the bucket is ahead, the
 * database has lost commits: it was restored to an earlier point, or a standby that was behind took over.
 */
export interface ProgressMarker {
  /**
   * Marks the database as restored if it has lost commits. Returns whether it has. A new database has not, whatever is in the
   * bucket.
   */
  detectLoss(): Promise<boolean>;
  /** Advances the counter, unless commits were lost. Returns 1 if they were, for the counts of the reconciler. */
  advance(): Promise<number>;
  /** Advances the counter beyond the bucket's, once the loss is reconciled. */
  catchUp(): Promise<void>;
}

const MARKER_KEY = 'installation/progress.json';
const MAX_MARKER_BYTES = 1_024;

export function createProgressMarker(
  { db }: Pick<Database, 'db'>,
  storage: Pick<Storage, 'getBytes' | 'putBytes'>,
): ProgressMarker {
  async function detectLoss(): Promise<boolean> {
    const marker = await readMarker(storage);
    const row = await db
      .with('lost', (q) =>
        q
          .selectFrom('installation')
          .select('advanced_at')
          .where('progress', '<', sql<number>`${marker}::bigint`)
          .where('advanced_at', 'is not', null),
      )
      .with('marked', (q) =>
        q
          .insertInto('restores')
          .columns(['restored_to', 'marked_at'])
          .expression((eb) =>
            eb
              .selectFrom('lost')
              .select(['advanced_at', sql<Date>`now()`.as('marked_at')])
              .where(({ not, exists, selectFrom }) =>
                not(exists(selectFrom('restores').select('id').where('reconciled_at', 'is', null))),
              ),
          )
          .returning('id'),
      )
      .selectNoFrom(({ exists, selectFrom }) => exists(selectFrom('lost').select('advanced_at')).as('isLost'))
      .executeTakeFirst();
    return row?.isLost === true;
  }

  async function catchUp(): Promise<void> {
    const marker = await readMarker(storage);
    const row = await db
      .updateTable('installation')
      .set({ progress: sql`greatest(progress, ${marker}::bigint) + 1`, advanced_at: sql`now()` })
      .returning(sql<string>`progress::text`.as('progress'))
      .executeTakeFirst();
    if (row) await storage.putBytes(MARKER_KEY, Buffer.from(JSON.stringify(row)), 'application/json');
  }

  return {
    detectLoss,
    async advance() {
      try {
        if (await detectLoss()) return 1;
        await catchUp();
      } catch (error) {
        // Storage has its own checks, and its outage must not fail the reconciler.
        if (!(error instanceof StorageError)) throw error;
      }
      return 0;
    },
    catchUp,
  };
}

/** The counter in the bucket; 0 if there is none. */
async function readMarker(storage: Pick<Storage, 'getBytes'>): Promise<string> {
  try {
    const text = (await storage.getBytes(MARKER_KEY, MAX_MARKER_BYTES)).toString();
    return /"progress":"(\d{1,18})"/.exec(text)?.[1] ?? '0';
  } catch (error) {
    if (error instanceof StorageError && error.failure === 'missing') return '0';
    throw error;
  }
}

const RETRY_DELAY_MS = 2_000;
/** Storage that takes a request and does not answer it would delay the start by 99 s. */
const START_TIMEOUT_MS = 5_000;

/**
 * Detects lost commits at the start of a worker.
 *
 * @param isRequired wait for storage: without it this process could not send anyway.
 */
export async function detectLossAtStart(
  marker: Pick<ProgressMarker, 'detectLoss'>,
  {
    isRequired,
    logger,
    timeoutMs = START_TIMEOUT_MS,
  }: { isRequired: boolean; logger: Pick<Logger, 'warn'>; timeoutMs?: number },
): Promise<void> {
  for (;;) {
    try {
      const detected = marker.detectLoss();
      await (isRequired ? detected : Promise.race([detected, rejectAfter(timeoutMs)]));
      return;
    } catch (error) {
      logger.warn({ err: error }, 'could not compare the database with the bucket');
      if (!isRequired) return;
      await pause(RETRY_DELAY_MS);
    }
  }
}

async function rejectAfter(timeoutMs: number): Promise<never> {
  await pause(timeoutMs, undefined, { ref: false });
  throw new Error(`Storage did not answer within ${timeoutMs} ms`);
}
