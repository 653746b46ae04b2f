import { type RawBuilder, sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { lowestIdAt } from '../../platform/ids.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';

/**
 * Takes one message from the inbox's allowance of the UTC day, in one statement that serializes its senders. A refusal
 * takes nothing, and a rollback returns the message. The first message of a day also counts those that the inbox sent
 * before the cap was set.
 */
export async function takeInboxAllowance(
  db: Db,
  { id: inboxId, organizationId }: Pick<Inbox, 'id' | 'organizationId'>,
  cap: number,
  now = new Date(),
): Promise<'taken' | 'exceeded'> {
  const today = now.toISOString().slice(0, 10);
  const taken = await db
    .with('known', (cte) =>
      cte
        .selectFrom('inbox_daily_sends')
        .select('messages')
        .where('inbox_id', '=', inboxId)
        .where('day', '=', today),
    )
    .with('earlier', (cte) =>
      cte
        .selectFrom('messages')
        .select('id')
        .where('inbox_id', '=', inboxId)
        .where('direction', '=', 'outbound')
        .where('id', '>=', lowestIdAt('message', new Date(today)))
        .where((eb) => eb.not(eb.exists(eb.selectFrom('known').select('messages'))))
        .limit(cap),
    )
    .with('sent', (cte) =>
      cte.selectFrom('earlier').select((eb) => eb(eb.fn.countAll<number>(), '+', 1).as('messages')),
    )
    .insertInto('inbox_daily_sends')
    .columns(['inbox_id', 'org_id', 'day', 'messages'])
    .expression((eb) =>
      eb
        .selectFrom('sent')
        .select([
          sql`${inboxId}::text`.as('inbox_id'),
          sql`${organizationId}::text`.as('org_id'),
          sql`${today}::date`.as('day'),
          'sent.messages',
        ])
        .where('sent.messages', '<=', cap),
    )
    .onConflict((conflict) =>
      conflict
        .column('inbox_id')
        .doUpdateSet({
          messages: sql`case when inbox_daily_sends.day < excluded.day then excluded.messages
            else inbox_daily_sends.messages + 1 end`,
          day: sql`greatest(inbox_daily_sends.day, excluded.day)`,
        })
        .where((eb) =>
          eb.or([
            eb('inbox_daily_sends.day', '<', eb.ref('excluded.day')),
            eb('inbox_daily_sends.messages', '<', cap),
          ]),
        ),
    )
    .returning('inbox_daily_sends.inbox_id')
    .executeTakeFirst();
  return taken ? 'taken' : 'exceeded';
}

/** Returns a message that was taken in the same transaction but is refused for another reason. */
export async function returnInboxAllowance(db: Db, inboxId: string): Promise<void> {
  await db
    .updateTable('inbox_daily_sends')
    .set((eb) => ({ messages: eb('messages', '-', 1) }))
    .where('inbox_id', '=', inboxId)
    .execute();
}

/** Counts the messages that an inbox has sent since a time, up to a limit. */
async function countSentSince(
  db: Db,
  inboxId: string,
  { since, limit }: { since: Date; limit: number },
): Promise<number> {
  const row = await db
    .selectFrom((eb) =>
      eb
        .selectFrom('messages')
        .select('id')
        .where('inbox_id', '=', inboxId)
        .where('direction', '=', 'outbound')
        .where('id', '>=', lowestIdAt('message', since))
        .limit(limit)
        .as('sent'),
    )
    .select(sql<number>`count(*)::int`.as('messages'))
    .executeTakeFirst();
  return row?.messages ?? 0;
}

/** The daily cap of organizations on the shared domain, because all of them share its reputation. */
export interface SharedDomainLimit {
  /** Recipients on the first day of sending. */
  startingCap: number;
  now?: () => Date;
}

/** Doubling ends here; far above what an organization can send in a day. */
const MAX_CAP = 1_000_000_000;

/** Start of a UTC day, for comparison with `timestamptz` columns. */
const START_OF_DAY = sql`(shared_domain_caps.day::timestamp at time zone 'UTC')`;
/**
 * Today's cap: doubled after a day of sending, unless an inbox on the shared domain has exceeded the reputation limits
 * since then. Such an inbox is paused, so the times of pauses and resumptions show this. A pause by a person or a key says nothing
 * about reputation.
 */
const capOn = (day: RawBuilder<unknown>, startingCap: RawBuilder<unknown>) =>
  sql<number>`greatest(${startingCap}, case
  when shared_domain_caps.day < ${day} and not exists (
    select from inboxes i where i.org_id = shared_domain_caps.org_id and i.domain_id is null
      and (i.reputation_paused or i.send_resumed_at >= ${START_OF_DAY}))
  then least(shared_domain_caps.cap::bigint * 2, ${MAX_CAP})::int else shared_domain_caps.cap end)`;
const TODAYS_CAP = capOn(sql`excluded.day`, sql`excluded.cap`);
const SENT_TODAY = sql<number>`(case when shared_domain_caps.day < excluded.day then 0 else shared_domain_caps.recipients end + excluded.recipients)`;

/**
 * Takes recipients from the organization's allowance of the day, in one statement that serializes its senders. A
 * refusal takes nothing, and a rollback returns the recipients. Custom domains and sandbox environments have no cap.
 */
export async function takeSharedDomainAllowance(
  db: Db,
  inbox: Pick<Inbox, 'organizationId' | 'environmentId' | 'domainId'>,
  recipients: number,
  { startingCap, now = () => new Date() }: SharedDomainLimit,
): Promise<'taken' | 'exceeded'> {
  if (inbox.domainId !== null) return 'taken';
  const { organizationId, environmentId } = inbox;
  const today = now().toISOString().slice(0, 10);
  const result = await db
    .with('applicable', (cte) =>
      cte
        .selectFrom('environments')
        .select('id')
        .where('id', '=', environmentId)
        .where('kind', '<>', 'sandbox'),
    )
    .with('taken', (cte) =>
      cte
        .insertInto('shared_domain_caps')
        .columns(['org_id', 'day', 'recipients', 'cap'])
        .expression((eb) =>
          eb
            .selectFrom('applicable')
            .select([
              sql`${organizationId}::text`.as('org_id'),
              sql`${today}::date`.as('day'),
              sql`${recipients}::int`.as('recipients'),
              sql`${startingCap}::int`.as('cap'),
            ])
            .where(
              eb.or([
                eb.val(recipients <= startingCap),
                eb.exists(
                  eb
                    .selectFrom('shared_domain_caps as known')
                    .select('known.org_id')
                    .where('known.org_id', '=', organizationId),
                ),
              ]),
            ),
        )
        .onConflict((conflict) =>
          conflict
            .column('org_id')
            .doUpdateSet({
              recipients: SENT_TODAY,
              cap: TODAYS_CAP,
              day: sql`greatest(shared_domain_caps.day, excluded.day)`,
            })
            .where(SENT_TODAY, '<=', TODAYS_CAP),
        )
        .returning('shared_domain_caps.org_id'),
    )
    .selectNoFrom((eb) => [
      eb.exists(eb.selectFrom('applicable').select('id')).as('applies'),
      eb.exists(eb.selectFrom('taken').select('org_id')).as('isTaken'),
    ])
    .executeTakeFirst();
  return result?.applies && !result.isTaken ? 'exceeded' : 'taken';
}

/** What a daily cap allows, and what is left of it. */
export interface DailyAllowance {
  limit: number;
  remaining: number;
}

/** How many recipients the organization may still send to today from the shared domain. */
export async function readSharedDomainAllowance(
  db: Db,
  organizationId: string,
  { startingCap, now = () => new Date() }: SharedDomainLimit,
): Promise<DailyAllowance> {
  const today = sql`${now().toISOString().slice(0, 10)}::date`;
  const row = await db
    .selectFrom('shared_domain_caps')
    .select([
      capOn(today, sql`${startingCap}::int`).as('cap'),
      sql<number>`case when day < ${today} then 0 else recipients end`.as('sent'),
    ])
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
  const { cap, sent } = row ?? { cap: startingCap, sent: 0 };
  return { limit: cap, remaining: Math.max(0, cap - sent) };
}

/** How many messages an inbox may still send today. Before the first one under a cap, it counts those that were sent. */
export async function readInboxAllowance(
  db: Db,
  inboxId: string,
  cap: number,
  now = new Date(),
): Promise<DailyAllowance> {
  const today = now.toISOString().slice(0, 10);
  const counted = await db
    .selectFrom('inbox_daily_sends')
    .select('messages')
    .where('inbox_id', '=', inboxId)
    .where('day', '=', today)
    .executeTakeFirst();
  const sent =
    counted?.messages ?? (await countSentSince(db, inboxId, { since: new Date(today), limit: cap }));
  return { limit: cap, remaining: Math.max(0, cap - sent) };
}
