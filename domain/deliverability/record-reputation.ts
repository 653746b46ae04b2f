import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { pauseSending } from '../inboxes/inbox-status.ts';
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
  em: EntityManager,
  source: OutcomeSource,
  outcomes: readonly NegativeOutcome[],
  simulatorDomain: string,
): Promise<void> {
  const { inboxId, organizationId, messageId } = source;
  await lockKey(em, 'reputation', inboxId);
  await em.execute(
    sql`insert into reputation_outcomes (inbox_id, kind, message_id, position, org_id, created_at)
     select ${inboxId}, r.kind, ${messageId}, r.position, ${organizationId}, now()
     from jsonb_to_recordset(${JSON.stringify(outcomes)}::jsonb) as r(kind text, position smallint)
     on conflict do nothing`,
  );
  const inbox = await em.findOne(
    InboxEntity,
    { id: inboxId, sendPaused: false },
    { fields: ['sendResumedAt'] },
  );
  if (!inbox) return;
  const since = Math.max(Date.now() - REPUTATION_WINDOW_MS, inbox.sendResumedAt?.getTime() ?? 0);
  const reason = await evaluateReputation(em, {
    inboxId,
    minMessageId: lowestIdAt('message', new Date(since)),
    outcomes,
    simulatorDomain,
  });
  if (reason !== null) await pauseSending(em, inboxId, reason);
}

interface ReputationWindow {
  inboxId: string;
  /** Ids sort by time: older messages lie outside the window, or before the inbox was last resumed. */
  minMessageId: string;
  outcomes: readonly NegativeOutcome[];
  simulatorDomain: string;
}

/** @returns the reason to pause the inbox; null if its reputation is good or need not be evaluated now. */
async function evaluateReputation(em: EntityManager, window: ReputationWindow): Promise<string | null> {
  const { inboxId, minMessageId, outcomes, simulatorDomain } = window;
  const [counted] = await em.execute<{ bounces: number; complaints: number }[]>(
    sql`select count(*) filter (where kind = 'bounce')::int as bounces,
       count(*) filter (where kind = 'complaint')::int as complaints
     from reputation_outcomes where inbox_id = ${inboxId} and kind in ('bounce', 'complaint') and message_id >= ${minMessageId}`,
  );
  const totals = { bounces: counted?.bounces ?? 0, complaints: counted?.complaints ?? 0 };
  const added = (kind: NegativeOutcome['kind']) => outcomes.filter((outcome) => outcome.kind === kind).length;
  if (
    !needsEvaluation('bounces', totals.bounces, added('bounce')) &&
    !needsEvaluation('complaints', totals.complaints, added('complaint'))
  )
    return null;
  const [sent] = await em.execute<{ sends: number }[]>(
    sql`select count(*)::int as sends from (
       select from messages m join message_recipients r on r.message_id = m.id
       where m.inbox_id = ${inboxId} and m.direction = 'outbound' and m.id >= ${minMessageId}
         and r.status in ('sent', 'delivered', 'bounced', 'complained') and lower(r.email) not like ${`%@${simulatorDomain}`}
       limit ${minSendsBelowThreshold(totals)}) as counted`,
  );
  return findPauseReason({ ...totals, sends: sent?.sends ?? 0 });
}
