import { sql } from 'kysely';
import type pg from 'pg';
import { createMetricService, type MetricFilter } from '../domain/metrics/metric.service.ts';
import { COUNT_COLUMNS } from '../domain/metrics/metric-counts.ts';
import { buildMetricQuery, type MetricQuery } from '../domain/metrics/metric-query.ts';
import { DAY_MS, startOfHour } from '../domain/metrics/metric-range.ts';
import { createDatabase, type Database } from '../platform/database/database.ts';
import { withBenchDatabase } from './bench-database.ts';
import { createBenchInbox, fillInbox, idsOf, scopeOf } from './fill-messages.ts';
import { percentile } from './measure.ts';

const INBOXES = 500;
const DOMAINS = 10;
const DAYS = 31;
/** The rows that accumulate in ten minutes if 10 million messages a month change three times each. */
const WAITING = 7_000;
const RUNS = 100;
const TARGET_MS = 50;
const CHANGED = 20_000;

/**
 * `npm run bench -- metrics`: queries an environment of 10,000,000 messages a month (500 inboxes with messages in every
 * hour, and deltas that are not applied yet) next to another one of the same size; prints the query plans; measures what
 * counting adds to an update of a message.
 */
export function benchMetrics(): Promise<void> {
  return withBenchDatabase(async ({ owner, apiUrl }) => {
    for (const name of ['metrics', 'neighbor']) await fillHours(owner, name);
    await owner.query('vacuum analyze');
    const api = createDatabase({ url: apiUrl, poolSize: 2 });
    await measureQuestions(api);
    await showPlans(api);
    await api.close();
    await measureTriggers(owner);
  });
}

async function fillHours(owner: pg.Client, name: string): Promise<void> {
  const { org, env } = idsOf({ name });
  await createBenchInbox(owner, name);
  await owner.query(
    `insert into inboxes (id, org_id, env_id, email, username, domain, created_at, updated_at)
     select 'inb_${name}' || n, '${org}', '${env}', 'agent@' || n || '.${name}.test', 'agent', n % ${DOMAINS} || '.${name}.test', now(), now()
     from generate_series(1, ${INBOXES}) n`,
  );
  const counts = COUNT_COLUMNS.map((_column, index) => `(13 + hours.n % (7 + ${index}))::int`).join(', ');
  await owner.query(
    `insert into metric_hours (org_id, env_id, subject, hour, ${COUNT_COLUMNS.join(', ')})
     select '${org}', '${env}', subject, date_trunc('hour', now()) - hours.n * interval '1 hour', ${counts}
     from generate_series(0, ${DAYS * 24 - 1}) hours (n), (
       select id from inboxes where env_id = '${env}'
       union all select distinct domain from inboxes where env_id = '${env}'
       union all select '') subjects (subject)`,
  );
  await owner.query(
    `insert into metric_deltas (org_id, env_id, inbox_id, hour, sent)
     select '${org}', '${env}', 'inb_${name}' || (1 + n % ${INBOXES}), date_trunc('hour', now()), 1
     from generate_series(1, ${WAITING}) n`,
  );
}

const QUESTIONS: [string, MetricFilter][] = [
  ['the environment', {}],
  ['an inbox', { inboxId: 'inb_metrics1' }],
  ['a domain', { domain: '1.metrics.test' }],
];

async function measureQuestions(database: Database): Promise<void> {
  const metrics = createMetricService({ database });
  const scope = scopeOf({ name: 'metrics' });
  const start = new Date(Date.now() - DAYS * DAY_MS + 3_600_000);
  const rows: Record<string, object> = {};
  for (const [name, filter] of QUESTIONS) {
    const asked = { ...filter, start };
    const work: Record<string, () => Promise<unknown>> = {
      [`${DAYS} days by the hour, ${name}`]: () => metrics.getActivity(scope, asked),
      [`${DAYS} days in one, ${name}`]: () => metrics.getSummary(scope, asked),
      [`deliverability of a day, ${name}`]: () => metrics.getDeliverability(scope, filter),
    };
    for (const [question, ask] of Object.entries(work)) {
      const durations: number[] = [];
      for (let run = 0; run < RUNS + 5; run += 1) {
        const startedAt = performance.now();
        await ask();
        if (run >= 5) durations.push(performance.now() - startedAt);
      }
      const [p50, p95] = [percentile(durations, 0.5), percentile(durations, 0.95)];
      rows[question] = {
        'p50 ms': Number(p50.toFixed(1)),
        'p95 ms': Number(p95.toFixed(1)),
        [`target ≤ ${TARGET_MS}`]: p95 <= TARGET_MS ? 'met' : 'MISSED',
      };
    }
  }
  console.table(rows);
}

/** With the API's login, under row-level security. */
async function showPlans(database: Database): Promise<void> {
  const scope = scopeOf({ name: 'metrics' });
  const end = new Date(startOfHour(new Date()).getTime() + 3_600_000);
  const range = { start: new Date(end.getTime() - DAYS * DAY_MS), end };
  const subjects: MetricQuery['subject'][] = [
    { kind: 'environment' },
    { kind: 'inbox', id: 'inb_metrics1' },
    { kind: 'domain', name: '1.metrics.test' },
  ];
  for (const subject of subjects) {
    const { environmentId } = scope;
    const lines = await database.read(scope, ({ db }) =>
      buildMetricQuery(db, { environmentId, subject, range, granularity: 'hour' }).explain<{
        'QUERY PLAN': string;
      }>('text', sql`analyze, costs off, timing off`),
    );
    console.log(`\nplan for ${subject.kind}`);
    for (const line of lines) console.log(`  ${line['QUERY PLAN']}`);
  }
}

/** One statement that marks many messages as sent, with the counting trigger and without it. */
async function measureTriggers(owner: pg.Client): Promise<void> {
  await fillInbox(owner, { name: 'counted', count: CHANGED });
  const mark = async (column: string) => {
    const startedAt = performance.now();
    await owner.query(`update messages set ${column} = now() where inbox_id = 'inb_counted'`);
    return ((performance.now() - startedAt) * 1000) / CHANGED;
  };
  await mark('reconciled_at');
  const counted = (await mark('delivered_at')) + (await mark('bounced_at'));
  await owner.query('alter table messages disable trigger count_update');
  const uncounted = (await mark('complained_at')) + (await mark('reconciled_at'));
  console.log(
    `a change of a message: ${(counted / 2).toFixed(0)} µs counted, ${(uncounted / 2).toFixed(0)} µs not counted`,
  );
}
