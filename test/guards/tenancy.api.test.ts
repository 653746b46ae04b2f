import { expect, test } from '@jest/globals';
import { usePostgres } from '../support/resources.ts';

/** Tables without a tenant, each with its reason. */
const WITHOUT_TENANT = new Map([
  ['users', 'a person may belong to several organizations'],
  ['unattributed_reports', 'nobody knows whose they are'],
  ['rate_buckets', 'tokens only, by id of credential or organization'],
  ['mikro_orm_migrations', 'of the schema itself'],
]);

const owner = usePostgres('ownerUrl');
const api = usePostgres('apiUrl');

async function tables(): Promise<
  { name: string; secured: boolean; policies: string[]; tenantColumn: boolean }[]
> {
  const { rows } = await owner.query(`
    select c.relname as name, c.relrowsecurity as secured,
      array(select polname::text from pg_policy where polrelid = c.oid) as policies,
      exists (select from pg_attribute where attrelid = c.oid and attname = 'org_id') as "tenantColumn"
    from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')`);
  return rows;
}

test('every table has a tenant and a policy, or a reason to have none', async () => {
  const all = await tables();
  expect(all.length).toBeGreaterThan(20);
  for (const table of all.filter(({ name }) => !WITHOUT_TENANT.has(name))) {
    expect(table).toMatchObject({ secured: true, policies: expect.arrayContaining(['tenant', 'worker']) });
    expect(table.tenantColumn || table.name === 'organizations').toBe(true);
  }
  expect(all.filter(({ name, tenantColumn }) => WITHOUT_TENANT.has(name) && tenantColumn)).toEqual([]);
});

test('the API login sees no row of any tenant outside a transaction that names one', async () => {
  await seedOneRow();
  for (const { name } of await tables()) {
    const { rows } = await api.query(
      `select has_table_privilege(current_user, '"${name}"', 'select') as readable`,
    );
    if (!rows[0].readable || WITHOUT_TENANT.has(name)) continue;
    const { rows: seen } = await api.query(`select count(*)::int as count from "${name}"`);
    expect({ name, count: seen[0].count }).toEqual({ name, count: 0 });
  }
});

test('the API login neither owns a table nor bypasses row-level security', async () => {
  const { rows } = await api.query(
    `select rolsuper, rolbypassrls, (select count(*)::int from pg_class where relowner = pg_roles.oid) as owned
     from pg_roles where rolname = current_user`,
  );
  expect(rows).toEqual([{ rolsuper: false, rolbypassrls: false, owned: 0 }]);
});

/** Without a row to hide the test above could not fail. */
async function seedOneRow(): Promise<void> {
  await owner.query(`insert into organizations (id, name, slug, created_at, updated_at)
    values ('org_hidden', 'Hidden', 'hidden', now(), now()) on conflict do nothing`);
  await owner.query(`insert into environments (id, org_id, name, kind, created_at, updated_at)
    values ('env_hidden', 'org_hidden', 'production', 'production', now(), now()) on conflict do nothing`);
}
