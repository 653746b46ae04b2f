import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Inbox } from '../inboxes/inbox.entity.ts';

/** The daily cap of organizations on the shared domain, whose reputation all of them share. */
export interface SharedDomainLimit {
  /** Recipients on the first day of sending. */
  startingCap: number;
  now?: () => Date;
}

/** Doubling ends here; far above what an organization can send in a day. */
const MAX_CAP = 1_000_000_000;

/** Times of a UTC day, for comparison with `timestamptz` columns. */
const START_OF_DAY = sql`(c.day::timestamp at time zone 'UTC')`;
/**
 * Today's cap: doubled after a day of sending, unless an inbox on the shared domain has been over the limits of reputation
 * since then. Those pause an inbox, so a pause, or its end, since that day says so.
 */
const TODAYS_CAP = sql`greatest(excluded.cap, case
  when c.day < excluded.day and not exists (
    select from inboxes i where i.org_id = c.org_id and i.domain_id is null
      and (i.send_paused or i.send_resumed_at >= ${START_OF_DAY}))
  then least(c.cap::bigint * 2, ${MAX_CAP})::int else c.cap end)`;
const SENT_TODAY = sql`case when c.day < excluded.day then 0 else c.recipients end + excluded.recipients`;

/**
 * Takes recipients from the organization's allowance of the day, in one statement that serializes its senders. Nothing is
 * taken on a refusal, and a rollback returns them. Custom domains and sandbox environments have no cap.
 */
export async function takeSharedDomainAllowance(
  em: EntityManager,
  inbox: Pick<Inbox, 'organizationId' | 'environmentId' | 'domainId'>,
  recipients: number,
  { startingCap, now = () => new Date() }: SharedDomainLimit,
): Promise<'taken' | 'exceeded'> {
  if (inbox.domainId !== null) return 'taken';
  const { organizationId, environmentId } = inbox;
  const today = now().toISOString().slice(0, 10);
  const [row] = await em.execute<{ applies: boolean; taken: boolean }[]>(sql`
    with applicable as (
      select from environments where id = ${environmentId} and kind <> 'sandbox'),
    taken as (
      insert into shared_domain_caps as c (org_id, day, recipients, cap)
      select ${organizationId}, ${today}::date, ${recipients}, ${startingCap} from applicable
      where ${recipients} <= ${startingCap}
        or exists (select from shared_domain_caps where org_id = ${organizationId})
      on conflict (org_id) do update
      set recipients = ${SENT_TODAY}, cap = ${TODAYS_CAP}, day = greatest(c.day, excluded.day)
      where ${SENT_TODAY} <= ${TODAYS_CAP}
      returning 1)
    select exists (select from applicable) as applies, exists (select from taken) as taken`);
  return row?.applies && !row.taken ? 'exceeded' : 'taken';
}
