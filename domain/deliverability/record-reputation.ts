import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import { pauseForReputation } from '../inboxes/inbox-status.ts';
import {
  findPauseReason,
  minSendsBelowThreshold,
  needsEvaluation,
  REPUTATION_WINDOW_DAYS,
} from './reputation.ts';
import type { NegativeOutcome, OutcomeSource } from './suppress-addresses.ts';

const REPUTATION_WINDOW_MS = REPUTATION_WINDOW_DAYS * 24 * 3_600_000;

/**
 * Counts outcomes against the sending inbox, and pauses its sending if there are too many. Calls for one inbox are
 * serialized, so that the second of two concurrent calls counts both.
 *
 * @param simulatorDomain recipients in this domain do not count as sends.
 */
export async function recordReputation(
  db: Db,
  source: OutcomeSource,
  outcomes: readonly NegativeOutcome[],
  simulatorDomain: string,
): Promise<void> {
  const { inboxId, organizationId, messageId } = source;
  await lockKey(db, 'reputation', inboxId);
  await db
    .insertInto('reputation_outcomes')
    .values(
      outcomes.map(({ kind, position }) => ({
        inbox_id: inboxId,
        kind,
        message_id: messageId,
        position,
        org_id: organizationId,
      })),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const inbox = await db
    .selectFrom('inboxes')
    .select('send_resumed_at as sendResumedAt')
    .where('id', '=', inboxId)
    .where('reputation_paused', '=', false)
    .executeTakeFirst();
  if (!inbox) return;
  const since = Math.max(Date.now() - REPUTATION_WINDOW_MS, inbox.sendResumedAt?.getTime() ?? 0);
  const reason = await evaluateReputation(db, {
    inboxId,
    minMessageId: lowestIdAt('message', new Date(since)),
    outcomes,
    simulatorDomain,
  });
  if (reason !== null) await pauseForReputation(db, inboxId, reason);
}

interface ReputationWindow {
  inboxId: string;
  /** Ids sort by time. Messages with lower ids are older than the window or than the last resumption of the inbox. */
  minMessageId: string;
  outcomes: readonly NegativeOutcome[];
  simulatorDomain: string;
}

/** @returns the reason to pause the inbox; null if its reputation is good or need not be evaluated now. */
async function evaluateReputation(db: Db, window: ReputationWindow): Promise<string | null> {
  const { inboxId, minMessageId, outcomes, simulatorDomain } = window;
  const counted = await db
    .selectFrom('reputation_outcomes')
    .select((eb) => [
      eb.fn.countAll<number>().filterWhere('kind', '=', 'bounce').as('bounces'),
      eb.fn.countAll<number>().filterWhere('kind', '=', 'complaint').as('complaints'),
    ])
    .where('inbox_id', '=', inboxId)
    .where('kind', 'in', ['bounce', 'complaint'])
    .where('message_id', '>=', minMessageId)
    .executeTakeFirst();
  const totals = { bounces: counted?.bounces ?? 0, complaints: counted?.complaints ?? 0 };
  const added = (kind: NegativeOutcome['kind']) => outcomes.filter((outcome) => outcome.kind === kind).length;
  if (
    !needsEvaluation('bounces', totals.bounces, added('bounce')) &&
    !needsEvaluation('complaints', totals.complaints, added('complaint'))
  )
    return null;
  const sent = await db
    .selectFrom((eb) =>
      eb
        .selectFrom('messages as m')
        .innerJoin('message_recipients as r', 'r.message_id', 'm.id')
        .select('m.id')
        .where('m.inbox_id', '=', inboxId)
        .where('m.direction', '=', 'outbound')
        .where('m.id', '>=', minMessageId)
        .where('r.status', 'in', ['sent', 'delivered', 'bounced', 'complained'])
        .where(sql`lower(r.email)`, 'not like', `%@${simulatorDomain}`)
        .limit(minSendsBelowThreshold(totals))
        .as('counted'),
    )
    .select((eb) => eb.fn.countAll<number>().as('sends'))
    .executeTakeFirst();
  return findPauseReason({ ...totals, sends: sent?.sends ?? 0 });
}

const PURGE_BATCH_SIZE = 5_000;

/**
 * Deletes outcomes that no longer count against an inbox. Only messages of the last 7 days count, and reports arrive
 * for at most another 30 days. Returns the number of deleted outcomes.
 */
export async function purgeReputationOutcomes({ db }: Pick<Database, 'db'>): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('reputation_outcomes')
    .where(({ eb, refTuple, selectFrom }) =>
      eb(
        refTuple('inbox_id', 'kind', 'message_id', 'position'),
        'in',
        selectFrom('reputation_outcomes as expired')
          .select(['expired.inbox_id', 'expired.kind', 'expired.message_id', 'expired.position'])
          .where('expired.created_at', '<', sql<Date>`now() - interval '37 days'`)
          .limit(PURGE_BATCH_SIZE)
          .$asTuple('inbox_id', 'kind', 'message_id', 'position'),
      ),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
