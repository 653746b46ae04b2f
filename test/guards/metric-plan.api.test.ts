import { beforeAll, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { EXPORTED_HISTORY } from '../../domain/exports/exported-history.ts';
import type { RangeSource } from '../../domain/exports/exported-table.ts';
import { selectRange } from '../../domain/exports/read-pages.ts';
import { buildMetricQuery, type MetricSubject } from '../../domain/metrics/metric-query.ts';
import { startOfHour } from '../../domain/metrics/metric-range.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useApiDatabase, usePostgres, useWorkerDatabase } from '../support/resources.ts';

interface PlanLine {
  'QUERY PLAN': string;
}

const HOURS = 200;
const api = useApiDatabase();
const worker = useWorkerDatabase();
const owner = usePostgres('ownerUrl');
let organization: TestOrganization;
let inbox: { id: string; domain: string };
beforeAll(async () => {
  organization = await createOrganization(worker);
  inbox = await createInbox(worker, organization, { domain: 'plan.test' });
  const ids = [organization.organizationId, organization.productionEnvironmentId, inbox.id];
  await owner.query(
    `insert into metric_hours (org_id, env_id, subject, hour, sent)
     select $1, $2, subject, date_trunc('hour', now()) - n * interval '1 hour', 1
     from generate_series(1, ${HOURS}) n, unnest(array['', $3, 'plan.test']) subject`,
    ids,
  );
  await owner.query(
    `insert into metric_deltas (org_id, env_id, inbox_id, hour, sent)
     select $1, $2, $3, date_trunc('hour', now()), 1 from generate_series(1, 100)`,
    ids,
  );
  await owner.query('analyze metric_hours, metric_deltas, inboxes');
});

/** Returns the query plan for the API's login, under row-level security. */
async function explain(run: (transaction: Transaction) => Promise<PlanLine[]>): Promise<string> {
  const { organizationId } = organization;
  const lines = await api.transaction({ organizationId }, async (transaction) => {
    // A small table does not need an index. If a policy prevented the use of an index, this setting would not help.
    await query(transaction, sql`set local enable_seqscan = off`);
    return run(transaction);
  });
  return lines.map((line) => line['QUERY PLAN']).join('\n');
}

function explainHourlyQuery({ db }: Transaction, subject: MetricSubject): Promise<PlanLine[]> {
  const { productionEnvironmentId: environmentId } = organization;
  const end = new Date(startOfHour(new Date()).getTime() + 3_600_000);
  const range = { start: new Date(end.getTime() - 48 * 3_600_000), end };
  return buildMetricQuery(db, { environmentId, subject, range, granularity: 'hour' }).explain<PlanLine>(
    'text',
  );
}

test('reads hours as one range of the primary key for every query, regardless of other data', async () => {
  const subjects: MetricSubject[] = [
    { kind: 'environment' },
    { kind: 'inbox', id: inbox.id },
    { kind: 'domain', name: inbox.domain },
  ];
  for (const subject of subjects) {
    const plan = await explain((transaction) => explainHourlyQuery(transaction, subject));
    expect(plan).toMatch(
      /metric_hours_pkey[\s\S]*?Index Cond: \(\(env_id = [^)]+\) AND \(subject = [^)]+\) AND \(hour >= [^)]+\) AND \(hour < /,
    );
    // Deltas are read with the environment's index, or with the primary key if there are very few.
    expect(plan).toMatch(/metric_deltas_env_id_hour_index|metric_deltas_pkey/);
    expect(plan).not.toContain('Seq Scan');
  }
});

test('an export reads the next hours with the primary key', async () => {
  const table = EXPORTED_HISTORY.find((entry) => entry.table === 'metric_hours');
  if (!table) throw new Error('Hours are not exported');
  const { productionEnvironmentId: parentId } = organization;
  const key = JSON.stringify([parentId, inbox.id, startOfHour(new Date()).toISOString()]);
  const [source] = table.sources as RangeSource[];
  if (!source) throw new Error('Hours have no source');
  const plan = await explain(({ db }) =>
    selectRange(db, { table, typeOf: () => '' }, source, { parentId, key }).explain<PlanLine>('text'),
  );
  expect(plan).toMatch(/metric_hours_pkey[\s\S]*?Index Cond: [^\n]*ROW\(env_id, subject, hour\) >/);
  expect(plan).not.toContain('Seq Scan');
});
