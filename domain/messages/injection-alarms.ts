import { type RawBuilder, sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { DEFAULT_POLICIES } from '../policies/find-policies.ts';
import { REMEMBERED_RECIPIENTS } from '../policies/recipient-policies.ts';
import type { InjectionAlarm } from './injection-alarm.entity.ts';

/** How long an alarm is in force from the arrival of its message, unless a person dismisses it. */
const ALARM_MS = 24 * 3_600_000;
/** With so many alarms in force, each further one concerns every address, so that the gate never reads more than {@link MAX_READ_ALARMS}. */
const MAX_LISTED_ALARMS = 50;
const MAX_READ_ALARMS = 2 * MAX_LISTED_ALARMS;
/** An address that the inbox wrote to before these messages counts as new. */
const RECENT_SENDS = 5_000;

/** SQL: the policy of the organization, whose row is `op`, and which may have none. */
const AFTER_ALARM = sql`coalesce(op.after_alarm, ${DEFAULT_POLICIES.afterAlarm})`;

/** How a person reads why a send needs approval. */
export const describeAlarm = (messageId: string): string =>
  `A received message (${messageId}) shows signs of prompt injection.`;

/** Puts the alarm of a received message in force, or corrects it, unless its time is over already. */
export async function raiseAlarm(
  db: Db,
  message: Pick<InjectionAlarm, 'messageId' | 'organizationId' | 'environmentId' | 'inboxId' | 'threadId'> & {
    /** Address keys that the message brought in; null: too many to list. */
    addresses: string[] | null;
    receivedAt: Date;
  },
): Promise<void> {
  const { messageId, organizationId, inboxId, addresses, receivedAt } = message;
  const endsAt = new Date(receivedAt.getTime() + ALARM_MS);
  if (endsAt.getTime() <= Date.now()) return;
  await db
    .insertInto('injection_alarms')
    .values({
      message_id: messageId,
      org_id: organizationId,
      env_id: message.environmentId,
      inbox_id: inboxId,
      thread_id: message.threadId,
      addresses: sql<string[] | null>`case when (select count(*) from injection_alarms o
        where o.org_id = ${organizationId} and o.inbox_id = ${inboxId} and o.ends_at > now()) < ${MAX_LISTED_ALARMS}
        then ${addresses}::text[] end`,
      ends_at: endsAt,
    })
    .onConflict((conflict) =>
      conflict.column('message_id').doUpdateSet((eb) => ({
        thread_id: eb.ref('excluded.thread_id'),
        addresses: eb.ref('excluded.addresses'),
      })),
    )
    .execute();
}

/** Ends the alarm of a message. Returns false if it has none in force. */
export async function endAlarm(db: Db, messageId: string): Promise<boolean> {
  const { numDeletedRows } = await db
    .deleteFrom('injection_alarms')
    .where('message_id', '=', messageId)
    .executeTakeFirst();
  return numDeletedRows > 0n;
}

/** The alarm in force of a message, which may have been deleted. */
export function findAlarm(
  db: Db,
  { organizationId, environmentId, environmentBound }: Scope,
  messageId: string,
): Promise<{ inboxId: string } | undefined> {
  return db
    .selectFrom('injection_alarms')
    .select('inbox_id as inboxId')
    .where('message_id', '=', messageId)
    .where('org_id', '=', organizationId)
    .$if(environmentBound, (query) => query.where('env_id', '=', environmentId))
    .executeTakeFirst();
}

/** What a send refers to, as far as it is known before its recipients and thread are final. */
export interface SendTarget {
  threadId: string | null;
  /** The messages that it replies to or forwards. */
  messageIds: readonly string[];
}

/**
 * The received message whose alarm in force demands that a person approves the send; null if none does. An alarm concerns sends
 * in its thread and forwards of its messages, to addresses that its message brought in, and to addresses that the inbox never
 * wrote to. Addresses of the inbox itself are free, and so is a new address for which an approver waived approval.
 *
 * Not prepared: a plan from when the tables were small compares each of thousands of messages with all recipients of the
 * service, which takes seconds.
 *
 * @param addresses to whom the message goes, and where it asks for answers, normalized by `toAddressKey`.
 */
export async function findDemandingAlarm(
  db: Db,
  inboxId: string,
  { addresses, threadId, messageIds }: SendTarget & { addresses: readonly string[] },
): Promise<string | null> {
  const others = sql`select r.email from jsonb_array_elements_text(${json(addresses)}) r(email)
    where split_part(split_part(r.email, '@', 1), '+', 1) || '@' || split_part(r.email, '@', -1)
      <> all (i.email || i.aliases)`;
  const alarm = await db
    .selectFrom('inboxes as i')
    .innerJoinLateral(
      (eb) =>
        eb
          .selectFrom('injection_alarms as o')
          .select(['o.message_id', 'o.thread_id', 'o.addresses'])
          .whereRef('o.org_id', '=', 'i.org_id')
          .whereRef('o.inbox_id', '=', 'i.id')
          .where('o.ends_at', '>', sql<Date>`now()`)
          .orderBy('o.ends_at', 'desc')
          .limit(MAX_READ_ALARMS)
          .as('a'),
      (join) => join.onTrue(),
    )
    .select('a.message_id as messageId')
    .where('i.id', '=', inboxId)
    .where(
      sql<boolean>`(a.thread_id = ${threadId}::text or a.message_id = ${anyOf(messageIds)}
        or a.thread_id in (
          select coalesce(t.merged_into_id, t.id) from messages f join threads t on t.id = f.thread_id
          where f.id = ${anyOf(messageIds)} and f.inbox_id = i.id)
        or exists (select from (${others}) r where a.addresses is null or r.email = any (a.addresses))
        or exists ((${others}) except (
          select lower(p.email) from (
            select m.id from messages m where m.inbox_id = i.id and m.direction = 'outbound'
            order by m.id desc limit ${RECENT_SENDS}) w
          join message_recipients p on p.message_id = w.id
          union all (${REMEMBERED_RECIPIENTS}))))`,
    )
    .limit(1)
    .executeTakeFirst();
  return alarm?.messageId ?? null;
}

/**
 * SQL: whether an alarm of the inbox `i` is in force. One look at an index. `op` is the row of `organization_policies`, whose
 * columns may be null.
 */
export const HAS_ALARM_IN_FORCE: RawBuilder<boolean> = sql`(${AFTER_ALARM} = 'approval' and exists (
  select from injection_alarms o where o.org_id = i.org_id and o.inbox_id = i.id and o.ends_at > now()))`;

/**
 * The message of an alarm in force in an inbox that the credential reaches; undefined if there is none. A deleted inbox counts,
 * because the agent has read its mail, and may have deleted it to end the alarm.
 */
export function findReachedAlarm(
  db: Db,
  { organizationId, environmentId, environmentBound, inboxId }: Scope,
): Promise<{ messageId: string; inboxId: string } | undefined> {
  return db
    .selectFrom('injection_alarms as a')
    .leftJoin('organization_policies as op', 'op.org_id', 'a.org_id')
    .select(['a.message_id as messageId', 'a.inbox_id as inboxId'])
    .where('a.org_id', '=', organizationId)
    .$if(environmentBound, (query) => query.where('a.env_id', '=', environmentId))
    .$if(inboxId !== undefined, (query) => query.where('a.inbox_id', '=', inboxId ?? ''))
    .where('a.ends_at', '>', sql<Date>`now()`)
    .where(sql<boolean>`${AFTER_ALARM} = 'approval'`)
    .orderBy('a.ends_at', 'desc')
    .limit(1)
    .executeTakeFirst();
}

/**
 * A deceived agent must not let others read the mail of an inbox, so a key may not do that after an injection alarm in an inbox
 * that it reaches. People may.
 *
 * @param what what such a key does not do, as in "creates webhook endpoints".
 * @throws AppError `policy_violation`.
 */
export async function requireNoAlarm(db: Db, scope: Scope, what: string): Promise<void> {
  if (scope.actor.kind === 'user') return;
  const alarm = await findReachedAlarm(db, scope);
  if (!alarm) return;
  const { messageId, inboxId } = alarm;
  throw new AppError('policy_violation', {
    detail: `${describeAlarm(messageId)} Until its alarm ends, no key that reaches its inbox (${inboxId}) ${what}.`,
    fix: `Ask a person to do it with their own session, or to dismiss the alarm if it is a false one: POST /api/v1/messages/${messageId}/injection/dismiss. It ends by itself 24 hours after the message arrived.`,
    extensions: { policy: 'after_alarm' },
  });
}

/** Without its addresses, an alarm concerns sends to every address. */
export async function forgetAlarmAddresses(db: Db, messageIds: readonly string[]): Promise<void> {
  await db
    .updateTable('injection_alarms')
    .set({ addresses: null })
    .where('message_id', '=', anyOf(messageIds))
    .execute();
}

/** Deletes the addresses in the alarms of an inbox. The alarms still restrict the keys that read its mail. */
export async function forgetInboxAlarmAddresses({ db }: Database, inboxId: string): Promise<void> {
  await db
    .updateTable('injection_alarms')
    .set({ addresses: null })
    .where('inbox_id', '=', inboxId)
    .where('addresses', 'is not', null)
    .execute();
}

const PURGE_BATCH_SIZE = 1_000;

/** Deletes alarms that have ended. Returns the number of deleted rows. */
export async function purgeEndedAlarms({ db }: Database): Promise<number> {
  const { numDeletedRows } = await db
    .deleteFrom('injection_alarms')
    .where('message_id', 'in', (eb) =>
      eb
        .selectFrom('injection_alarms')
        .select('message_id')
        .where('ends_at', '<=', sql<Date>`now()`)
        .limit(PURGE_BATCH_SIZE),
    )
    .executeTakeFirst();
  return Number(numDeletedRows);
}
