import { type SelectQueryBuilder, sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { selectDomainsInScope } from '../domains/domain.service.ts';
import { withinReach } from '../drafts/find-draft.ts';
import type { Permission } from '../identity/permissions.ts';
import { columnsWithin, type Scope } from '../identity/scope.ts';
import type { MetricService, MetricsOverview } from '../metrics/metric.service.ts';
import { DAY_MS, HOUR_MS } from '../metrics/metric-range.ts';
import { presentEndpoints } from '../webhooks/find-endpoint.ts';

/** For `exists` and counts, which read no column. */
const ONE = sql<number>`1`.as('one');

/** Counts end here: a page says "100+", and no statement counts millions of rows. */
export const MAX_COUNTED = 100;

/** What waits for a person, at most {@link MAX_COUNTED} + 1 of each. Null: the person may not see it. */
export interface Waiting {
  approvals: number | null;
  /** Sends whose outcome is unknown until a person decides. */
  needsAttention: number | null;
  /** Endpoints that fail, or that the service has disabled. */
  failingEndpoints: number | null;
  unverifiedDomains: number | null;
  /** Alarms in force of received messages that show signs of prompt injection. */
  alarms: number | null;
}

/** Whether each of the first steps is done, from what exists in the environment. */
export interface FirstSteps {
  inbox: boolean;
  send: boolean;
  /** A conversation: a thread with a message in each direction. */
  reply: boolean;
  webhook: boolean;
}

export interface Overview {
  /** Null without the permission. */
  metrics: MetricsOverview | null;
  waiting: Waiting;
  /** The newest alarms; null without the permission. */
  alarms: OverviewAlarm[] | null;
  steps: FirstSteps;
  /** The inbox to start with; null without one. */
  firstInbox: { id: string; email: string } | null;
}

export interface OverviewAlarm {
  messageId: string;
  /** Null if the message was deleted. */
  fromEmail: string | null;
  subject: string | null;
  endsAt: Date;
}

export type OverviewService = ReturnType<typeof createOverviewService>;

export interface OverviewServiceOptions {
  database: Database;
  metrics: Pick<MetricService, 'getOverview'>;
  now?: () => Date;
}

export function createOverviewService({ database, metrics, now = () => new Date() }: OverviewServiceOptions) {
  return {
    /** What a person who opens the console should know first. Few statements, each bounded. */
    async get(scope: Scope, { days }: { days: number }): Promise<Overview> {
      const [counts, state] = await Promise.all([
        scope.permissions.has('metrics:read')
          ? metrics.getOverview(scope, { start: new Date(now().getTime() - days * DAY_MS + HOUR_MS) })
          : null,
        database.read(scope, async ({ db }) => {
          const [waiting, alarms, steps, firstInbox] = await Promise.all([
            countWaiting(db, scope),
            findAlarms(db, scope),
            findFirstSteps(db, scope),
            findFirstInbox(db, scope),
          ]);
          return { waiting, alarms, steps, firstInbox };
        }),
      ]);
      return { metrics: counts, ...state };
    },
  };
}

/** One statement. Each part ends after {@link MAX_COUNTED} + 1 rows of its index, and is left out without its permission. */
async function countWaiting(db: Db, scope: Scope): Promise<Waiting> {
  const place = columnsWithin(scope);
  const counted = <Table extends keyof Tables>(
    permission: Permission,
    rows: SelectQueryBuilder<Tables, Table, object>,
  ) =>
    scope.permissions.has(permission)
      ? sql<number | null>`(select count(*)::int from (${rows.limit(MAX_COUNTED + 1)}) as each_row)`
      : sql<number | null>`null::int`;
  const row = await db
    .selectNoFrom([
      counted(
        'messages:approve',
        db
          .selectFrom('drafts')
          .select(ONE)
          .where('send_status', '=', 'pending_approval')
          .where((eb) => eb.and(withinReach(scope))),
      ).as('approvals'),
      counted(
        'messages:read',
        db
          .selectFrom('messages')
          .select(ONE)
          .where('status', '=', 'needs_attention')
          .where((eb) => eb.and(place)),
      ).as('needsAttention'),
      counted(
        'webhooks:read',
        presentEndpoints(db, scope, { state: 'failing' }).clearSelect().select(ONE),
      ).as('failingEndpoints'),
      counted(
        'domains:read',
        selectDomainsInScope(db, scope, { verified: false }).clearSelect().select(ONE),
      ).as('unverifiedDomains'),
      counted(
        'messages:read',
        db
          .selectFrom('injection_alarms')
          .select(ONE)
          .where('ends_at', '>', sql<Date>`now()`)
          .where((eb) => eb.and(place)),
      ).as('alarms'),
    ])
    .executeTakeFirst();
  return row as Waiting;
}

/** Newest threads that are searched for an answer, so that an environment with only received mail is not read whole. */
const SEARCHED_THREADS = 1_000;

/**
 * Counts of hours tell whether anything was sent, instead of the messages of an environment that only receives. A conversation
 * is looked for in the newest threads.
 */
async function findFirstSteps(db: Db, scope: Scope): Promise<FirstSteps> {
  const { environmentId, inboxId } = scope;
  const place = columnsWithin(scope);
  const environment = { org_id: scope.organizationId, env_id: environmentId };
  const sentHours = db
    .selectFrom('metric_hours')
    .select(ONE)
    .where('env_id', '=', environmentId)
    .where('subject', '=', inboxId ?? '')
    .where('sent', '>', 0);
  const sentDeltas = db
    .selectFrom('metric_deltas')
    .select(ONE)
    .where((eb) => eb.and(place))
    .where('sent', '>', 0);
  const newestThreads = db
    .selectFrom('threads')
    .select(['last_inbound_at', 'last_outbound_at'])
    .where((eb) => eb.and(place))
    .where('message_count', '>', 0)
    .orderBy('last_message_at', 'desc')
    .limit(SEARCHED_THREADS);
  const endpoints = db
    .selectFrom('webhook_endpoints')
    .select(ONE)
    .where((eb) => eb.and(environment))
    .where('deleted_at', 'is', null);
  return db
    .selectNoFrom(({ exists, or, selectFrom }) => [
      exists(firstInboxes(db, scope).select(ONE)).as('inbox'),
      or([exists(sentHours), exists(sentDeltas)]).as('send'),
      exists(
        selectFrom(newestThreads.as('newest'))
          .select(ONE)
          .where('last_inbound_at', 'is not', null)
          .where('last_outbound_at', 'is not', null),
      ).as('reply'),
      exists(endpoints).as('webhook'),
    ])
    .executeTakeFirstOrThrow(() => new Error('PostgreSQL returned no row')) as Promise<FirstSteps>;
}

const firstInboxes = (db: Db, { organizationId, environmentId, inboxId }: Scope) =>
  db
    .selectFrom('inboxes')
    .where('org_id', '=', organizationId)
    .where('env_id', '=', environmentId)
    .where('deleted_at', 'is', null)
    .$if(inboxId !== undefined, (query) => query.where('id', '=', inboxId as string))
    .orderBy('id')
    .limit(1);

async function findFirstInbox(db: Db, scope: Scope): Promise<Overview['firstInbox']> {
  return (await firstInboxes(db, scope).select(['id', 'email']).executeTakeFirst()) ?? null;
}

/** Alarms that Overview shows by name. */
const MAX_SHOWN_ALARMS = 20;

/** The alarms in force, the newest first. An alarm outlives its message, which then has no subject. */
async function findAlarms(db: Db, scope: Scope): Promise<OverviewAlarm[] | null> {
  if (!scope.permissions.has('messages:read')) return null;
  const { org_id, env_id, inbox_id } = columnsWithin(scope);
  return db
    .selectFrom('injection_alarms as a')
    .leftJoin('messages as m', 'm.id', 'a.message_id')
    .select(['a.message_id as messageId', 'm.from_email as fromEmail', 'm.subject', 'a.ends_at as endsAt'])
    .where('a.org_id', '=', org_id)
    .where('a.env_id', '=', env_id)
    .$if(inbox_id !== undefined, (query) => query.where('a.inbox_id', '=', inbox_id as string))
    .where('a.ends_at', '>', sql<Date>`now()`)
    .orderBy('a.ends_at', 'desc')
    .limit(MAX_SHOWN_ALARMS)
    .execute();
}
