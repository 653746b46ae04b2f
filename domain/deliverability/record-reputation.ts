import type { EntityManager } from '@mikro-orm/postgresql';
import { lowestIdAt } from '../../platform/ids.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import {
  minSendsBelowThreshold,
  needsEvaluation,
  pauseReason,
  REPUTATION_WINDOW_DAYS,
} from './reputation.ts';
import type { NegativeOutcome, OutcomeSource } from './suppress-addresses.ts';

const REPUTATION_WINDOW_MS = REPUTATION_WINDOW_DAYS * 24 * 3_600_000;

/**
 * Counts outcomes against the inbox that sent the mail, and pauses its sending where they are too many. Those of one
 * inbox wait for each other, so that of two at once the second one counts both.
 *
 * @param simulatorDomain recipients there were never sent to.
 */
export async function recordReputation(
  em: EntityManager,
  source: OutcomeSource,
  outcomes: readonly NegativeOutcome[],
  simulatorDomain: string,
): Promise<void> {
  const { inboxId, organizationId, messageId } = source;
  await em.execute('select pg_advisory_xact_lock(hashtextextended(?, 0))', [`reputation ${inboxId}`]);
  await em.execute(
    `insert into reputation_outcomes (inbox_id, kind, message_id, position, org_id, created_at)
     select ?, r.kind, ?, r.position, ?, now() from jsonb_to_recordset(?::jsonb) as r(kind text, position smallint)
     on conflict do nothing`,
    [inboxId, messageId, organizationId, JSON.stringify(outcomes)],
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
  if (reason === null) return;
  await em.nativeUpdate(
    InboxEntity,
    { id: inboxId, sendPaused: false },
    { sendPaused: true, sendPausedReason: reason, updatedAt: new Date() },
  );
}

interface ReputationWindow {
  inboxId: string;
  /** Ids sort by time: what is older lies before the days that count, or before the last resumption. */
  minMessageId: string;
  outcomes: readonly NegativeOutcome[];
  simulatorDomain: string;
}

async function evaluateReputation(em: EntityManager, counting: ReputationWindow): Promise<string | null> {
  const { inboxId, minMessageId: oldestMessageId, outcomes, simulatorDomain } = counting;
  const [counted] = await em.execute<{ bounces: number; complaints: number }[]>(
    `select count(*) filter (where kind = 'bounce')::int as bounces,
       count(*) filter (where kind = 'complaint')::int as complaints
     from reputation_outcomes where inbox_id = ? and kind in ('bounce', 'complaint') and message_id >= ?`,
    [inboxId, oldestMessageId],
  );
  const record = { bounces: counted?.bounces ?? 0, complaints: counted?.complaints ?? 0 };
  const added = (kind: NegativeOutcome['kind']) => outcomes.filter((outcome) => outcome.kind === kind).length;
  const look =
    needsEvaluation('bounces', record.bounces, added('bounce')) ||
    needsEvaluation('complaints', record.complaints, added('complaint'));
  if (!look) return null;
  const [sent] = await em.execute<{ sends: number }[]>(
    `select count(*)::int as sends from (
       select from messages m join message_recipients r on r.message_id = m.id
       where m.inbox_id = ? and m.direction = 'outbound' and m.id >= ?
         and r.status in ('sent', 'delivered', 'bounced', 'complained') and lower(r.email) not like ?
       limit ?) as counted`,
    [inboxId, oldestMessageId, `%@${simulatorDomain}`, minSendsBelowThreshold(record)],
  );
  return pauseReason({ ...record, sends: sent?.sends ?? 0 });
}
