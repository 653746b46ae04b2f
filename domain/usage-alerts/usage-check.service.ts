import type { EntityManager } from '@mikro-orm/postgresql';
import type { Logger } from 'pino';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { EventService } from '../events/event.service.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { LEVEL_COUNTER, USAGE_COUNTERS } from '../usage/counters.ts';
import { percentageOf } from '../usage/effective-limit.ts';
import { foldUsage } from '../usage/fold-deltas.ts';
import { monthOf, type Period } from '../usage/periods.ts';
import { readStandings, type Standing } from '../usage/standings.ts';
import { recordUsageEvent } from '../usage/usage-ledger.ts';
import { UsageAlertEntity } from './usage-alert.entity.ts';

export interface UsageCheckProgress {
  /** The last organization that was looked at. */
  after: string;
  organizations: number;
  told: number;
  /** Organizations that could not be told; the next check tries again. */
  failed?: number;
}

export interface UsageCheckService {
  /**
   * Looks at every organization: what crossed its warning threshold is told by `usage.warning`, what reached its limit
   * by `usage.exceeded`, each once for a counter, threshold and month, with a mail to the owners. An hour into a month the
   * one before is closed in the ledger.
   *
   * @param from where an earlier look came to.
   */
  check(options: {
    from?: UsageCheckProgress;
    progressed?: (soFar: UsageCheckProgress) => void;
  }): Promise<UsageCheckProgress>;
}

export interface UsageCheckServiceOptions {
  /** Of a worker. */
  database: Database;
  events: EventService;
  notifications: NotificationService;
  logger: Logger;
  now?: () => Date;
  /** Organizations looked at in one statement. */
  pageSize?: number;
}

const PAGE_SIZE = 200;

/** A counter that has reached a threshold. */
interface Crossing {
  standing: Standing;
  limit: number;
  /** Percent. */
  threshold: number;
}

export function createUsageCheckService(options: UsageCheckServiceOptions): UsageCheckService {
  const { database, now = () => new Date(), pageSize = PAGE_SIZE } = options;
  return {
    async check({ from, progressed }) {
      await foldUsage(database);
      const soFar = { after: '', organizations: 0, told: 0, failed: 0, ...from };
      for (;;) {
        const page = await database.statement<{ id: string }>(
          'select id from organizations where id > ? order by id limit ?',
          [soFar.after, pageSize],
        );
        const ids = page.map(({ id }) => id);
        const { told, failed } = await checkPage(options, ids, now());
        soFar.told += told;
        soFar.failed += failed;
        soFar.organizations += ids.length;
        soFar.after = ids.at(-1) ?? soFar.after;
        progressed?.({ ...soFar });
        if (ids.length < pageSize) return soFar;
      }
    },
  };
}

/** Who began in a month writes it down within this time, and is folded in. */
const MONTH_SETTLED_AFTER_MS = 3_600_000;

async function checkPage(
  options: UsageCheckServiceOptions,
  organizationIds: string[],
  now: Date,
): Promise<CheckCounts> {
  const { database } = options;
  const period = monthOf(now);
  const before = monthOf(new Date(period.start.getTime() - 1));
  const isSettled = now.getTime() - period.start.getTime() >= MONTH_SETTLED_AFTER_MS;
  if (isSettled) await database.autocommit((em) => closeMonth(em, organizationIds, before, now));
  const counts = { told: 0, failed: 0 };
  // What was reached after a month's last look is told, too.
  for (const month of isSettled ? [period] : [before, period]) {
    const { told, failed } = await checkMonth(options, organizationIds, { period: month, now });
    counts.told += told;
    counts.failed += failed;
  }
  return counts;
}

interface CheckCounts {
  told: number;
  failed: number;
}

async function checkMonth(
  options: UsageCheckServiceOptions,
  organizationIds: string[],
  { period, now }: { period: Period; now: Date },
): Promise<CheckCounts> {
  const { database, logger } = options;
  const isOver = period.end <= now;
  const news = await database.autocommit(async (em) => {
    const standings = await readStandings(em, {
      organizationIds,
      // A level is of now.
      ...(isOver ? { counters: USAGE_COUNTERS.filter((counter) => counter !== LEVEL_COUNTER) } : {}),
      now: isOver ? period.start : now,
    });
    return withoutKnown(em, standings.flatMap(crossingsOf), period);
  });
  const counts = { told: 0, failed: 0 };
  for (const [organizationId, crossings] of Map.groupBy(news, ({ standing }) => standing.organizationId))
    try {
      counts.told += await database.systemTransaction((transaction) =>
        tell(transaction, options, { crossings, period, now }),
      );
    } catch (error) {
      // Those behind it have their turn all the same.
      logger.error({ organizationId, err: error }, 'usage could not be told');
      counts.failed += 1;
    }
  return counts;
}

/** The higher one last. Nothing is told of a limit of 0 that nothing was counted against. */
function crossingsOf(standing: Standing): Crossing[] {
  const { current, warningPercent, limit: effective } = standing;
  const { limit } = effective;
  if (limit === null || current === 0) return [];
  return [warningPercent, 100]
    .filter((threshold) => 100 * current >= limit * threshold)
    .map((threshold) => ({ standing, limit, threshold }));
}

/** One look for the page: who has been told is not locked out of anything by being looked at. */
async function withoutKnown(
  em: EntityManager,
  crossings: Crossing[],
  { start }: Period,
): Promise<Crossing[]> {
  if (crossings.length === 0) return [];
  const ids = new Set(crossings.map(({ standing }) => standing.organizationId));
  const alerts = await em.find(UsageAlertEntity, { organizationId: { $in: [...ids] }, periodStart: start });
  const keyOf = (...parts: (string | number)[]) => parts.join('/');
  const known = new Set(alerts.map((row) => keyOf(row.organizationId, row.counter, row.threshold)));
  return crossings.filter(
    ({ standing, threshold }) => !known.has(keyOf(standing.organizationId, standing.counter, threshold)),
  );
}

interface Telling {
  /** Of one organization. */
  crossings: Crossing[];
  period: Period;
  now: Date;
}

/** Row, event, mail and ledger commit together. Of two checks at once one writes the row, and tells. */
async function tell(
  transaction: Transaction,
  { events, notifications }: UsageCheckServiceOptions,
  { crossings, period, now }: Telling,
): Promise<number> {
  const { em } = transaction;
  const fresh: Crossing[] = [];
  for (const crossing of crossings) if (await isFirst(em, crossing, period, now)) fresh.push(crossing);
  for (const crossing of fresh) {
    const { standing, limit, threshold } = crossing;
    const { organizationId, counter, current } = standing;
    const percentage = percentageOf(current, limit);
    const data = {
      counter,
      current,
      limit,
      percentage,
      threshold,
      period_start: period.start.toISOString(),
      period_end: period.end.toISOString(),
    };
    recordUsageEvent(em, {
      organizationId,
      counter,
      data,
      at: now,
      kind: 'threshold_crossed',
      actor: 'system',
    });
    const environment = await em.findOneOrFail(
      EnvironmentEntity,
      { organizationId, kind: 'production' },
      { orderBy: { id: 'asc' } },
    );
    await events.record(transaction, {
      organizationId,
      environmentId: environment.id,
      inboxId: null,
      data,
      type: threshold === 100 ? 'usage.exceeded' : 'usage.warning',
    });
    // Who jumped over both hears of the higher one.
    if (fresh.some((other) => other.standing === standing && other.threshold > threshold)) continue;
    await notifications.notifyOwners(transaction, {
      organizationId,
      template: threshold === 100 ? 'usage-exceeded' : 'usage-warning',
      params: {
        organizationId,
        counter,
        current,
        limit,
        percentage,
        kind: standing.limit.kind,
        resetsAt: counter === LEVEL_COUNTER ? null : period.end.toISOString().slice(0, 10),
      },
      dedupeKey: `usage/${organizationId}/${counter}/${threshold}/${data.period_start}`,
    });
  }
  return fresh.length;
}

async function isFirst(
  em: EntityManager,
  { standing, threshold }: Crossing,
  { start }: Period,
  now: Date,
): Promise<boolean> {
  const { organizationId, counter } = standing;
  const written = await em.execute<object[]>(
    `insert into usage_alerts (org_id, counter, threshold, period_start, created_at) values (?, ?, ?, ?, ?)
     on conflict do nothing returning counter`,
    [organizationId, counter, threshold, start.toISOString(), now.toISOString()],
  );
  return written.length > 0;
}

/** Once an organization: what it used in a month that is over, with what is not folded in yet. */
async function closeMonth(
  em: EntityManager,
  organizationIds: string[],
  { start, end }: Period,
  now: Date,
): Promise<void> {
  const period = { period_start: start.toISOString(), period_end: end.toISOString() };
  if (organizationIds.length === 0) return;
  const open = await em.execute<{ org_id: string; amounts: Record<string, number> }[]>(
    `select c.org_id, jsonb_object_agg(c.counter, c.amount + (
         select coalesce(sum(d.amount), 0) from usage_deltas d
         where d.org_id = c.org_id and d.counter = c.counter and d.at >= ? and d.at < ?)) as amounts
     from usage_counters c
     where c.period_start = ? and c.org_id in (${organizationIds.map(() => '?').join(', ')})
       and not exists (select from usage_events e
         where e.org_id = c.org_id and e.kind = 'period_closed' and e.data ->> 'period_start' = ?)
     group by c.org_id`,
    [period.period_start, period.period_end, period.period_start, ...organizationIds, period.period_start],
  );
  for (const { org_id, amounts } of open)
    await em.execute(
      `insert into usage_events (id, org_id, kind, counter, data, actor, at)
       values (?, ?, 'period_closed', null, ?::jsonb, 'system', ?) on conflict do nothing`,
      [newId('usageEvent'), org_id, JSON.stringify({ ...period, amounts }), now.toISOString()],
    );
}
