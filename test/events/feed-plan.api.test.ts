import { beforeAll, expect, test } from '@jest/globals';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { usePostgres, useWorkerDatabase } from '../support/resources.ts';

/** Plans the statements of `readEvents` with the API's role: its row-level policy must not prevent an index scan. */
const api = usePostgres('apiUrl');
const owner = usePostgres('ownerUrl');
const worker = useWorkerDatabase();
let organization: TestOrganization;
/** 1/300 of the events in each inbox, 1/1000 of a rare type: the statistics rule out every other index. */
const EVENTS = 3_000;

beforeAll(async () => {
  organization = await createOrganization(worker);
  await api.query(`select set_config('app.org_id', $1, false)`, [organization.organizationId]);
  await api.query(
    `insert into events (id, org_id, env_id, inbox_id, type, data, created_at)
     select 'evt_plan' || lpad(n::text, 8, '0'), $1, $2, 'inb_' || n % 300,
       case when n % 1000 = 0 then 'message.complained' else 'message.sent' end, '{}', now()
     from generate_series(1, ${EVENTS}) n`,
    [organization.organizationId, organization.productionEnvironmentId],
  );
  await owner.query('analyze events');
  // So few rows are just as fast without an index. If the policy prevented its use, this setting would not help.
  await api.query('set enable_seqscan = off');
  await api.query('set enable_sort = off');
});

async function planOf(condition: string): Promise<string> {
  const { rows } = await api.query(
    `explain select * from events where org_id = '${organization.organizationId}'
     and env_id = '${organization.productionEnvironmentId}' and ${condition}
     and not test and transaction_id < pg_snapshot_xmin(pg_current_snapshot())
     and (transaction_id, id) > ('3'::xid8, 'evt_') order by transaction_id, id limit 25`,
  );
  return rows.map((row) => row['QUERY PLAN']).join('\n');
}

test.each([
  ['true', 'events_env_id_transaction_id_id_index'],
  [`type = 'message.complained'`, 'events_env_id_type_transaction_id_id_index'],
  [`inbox_id = 'inb_3'`, 'events_inbox_index'],
])('a page where %s is a scan of %s', async (condition, index) => {
  const plan = await planOf(condition);
  expect(plan).toContain(`Index Scan using ${index}`);
  expect(plan).toMatch(/Index Cond: .*ROW\(transaction_id, id\) > ROW/);
  expect(plan).not.toContain('Sort');
});
