import { sql } from 'kysely';
import { anyLocked } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { runInBatches } from '../../platform/run-in-batches.ts';
import { COUNT_COLUMNS } from './metric-counts.ts';
import { INBOX_SUBJECTS } from './metric-query.ts';
import { startOfHour } from './metric-range.ts';

/** Counts a send that was refused before a message was created. */
export async function countRefusedSend(
  db: Db,
  inbox: { id: string; organizationId: string; environmentId: string },
  at: Date,
): Promise<void> {
  await db
    .insertInto('metric_deltas')
    .values({
      org_id: inbox.organizationId,
      env_id: inbox.environmentId,
      inbox_id: inbox.id,
      hour: startOfHour(at),
      rejected: 1,
    })
    .execute();
}

/** Deltas applied in one transaction. */
const BATCH_SIZE = 5_000;
/** Limits one sweep; the next one, a minute later, continues. */
const MAX_BATCHES = 20;

/**
 * A single statement moves deltas into the hours, so that every reader sees each delta exactly once. Concurrent calls take
 * different deltas and lock the hours in the same order.
 */
async function applyBatch(db: Db): Promise<number> {
  const row = await db
    .with('taken', (cte) =>
      cte
        .deleteFrom('metric_deltas')
        .where(
          'id',
          '=',
          anyLocked(
            db
              .selectFrom('metric_deltas')
              .select('id')
              .orderBy('id')
              .limit(BATCH_SIZE)
              .forUpdate()
              .skipLocked(),
          ),
        )
        .returning(['inbox_id', 'hour', ...COUNT_COLUMNS]),
    )
    // Locked: the foreign keys of the hours would fail the whole batch if an inbox were deleted with its organization after the
    // statement began.
    .with('present', (cte) =>
      cte
        .selectFrom('inboxes')
        .select(['id', 'org_id', 'env_id', 'domain'])
        .where('id', 'in', (eb) => eb.selectFrom('taken').select('inbox_id'))
        .forKeyShare(),
    )
    .with('applied', (cte) =>
      cte
        .insertInto('metric_hours')
        .columns(['org_id', 'env_id', 'subject', 'hour', ...COUNT_COLUMNS])
        .expression((eb) =>
          eb
            .selectFrom('taken')
            .innerJoin('present as inboxes', 'inboxes.id', 'taken.inbox_id')
            .crossJoin(sql.raw<{ subject: string }>(INBOX_SUBJECTS).as<'subjects'>(sql`subjects (subject)`))
            .select(['inboxes.org_id', 'inboxes.env_id', 'subject', 'taken.hour'])
            .select(COUNT_COLUMNS.map((name) => sql<number>`sum(${sql.ref(`taken.${name}`)})`.as(name)))
            .groupBy(['inboxes.org_id', 'inboxes.env_id', 'subject', 'taken.hour'])
            .orderBy('inboxes.env_id')
            .orderBy(sql`subject collate "C"`)
            .orderBy('taken.hour'),
        )
        .onConflict((conflict) =>
          conflict
            .columns(['env_id', 'subject', 'hour'])
            .doUpdateSet((eb) =>
              Object.fromEntries(
                COUNT_COLUMNS.map((name) => [
                  name,
                  eb(`metric_hours.${name}`, '+', eb.ref(`excluded.${name}`)),
                ]),
              ),
            ),
        ),
    )
    .selectFrom('taken')
    .select(sql<number>`count(*)`.as('count'))
    .executeTakeFirst();
  return row?.count ?? 0;
}

/**
 * Adds the pending deltas to the hourly counts of their environment, inbox and domain. Safe to run concurrently and to
 * interrupt at any point. Returns how many deltas were applied.
 */
export const applyMetricDeltas = ({ db }: Database): Promise<number> =>
  runInBatches(() => applyBatch(db), { size: BATCH_SIZE, maxBatches: MAX_BATCHES });
