import { beforeAll, describe, expect, test } from '@jest/globals';
import { newId } from '../../platform/ids.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { usePostgres } from '../support/resources.ts';
import { addInternalRows, createRichOrganization } from '../support/rich-organization.ts';

/** Tables without a tenant, and why. */
const WITHOUT_TENANT = new Map([
  ['users', 'a user may belong to several organizations'],
  ['mfa_enrollments', 'they belong to users; only the people role may read them'],
  ['mfa_recovery_codes', 'they belong to users; only the people role may read them'],
  ['mfa_challenges', 'they belong to users; only the people role may read them'],
  ['webauthn_challenges', 'they belong to users or nobody yet; only the people role may read them'],
  ['oauth_identities', 'they belong to users; only the people role may read them'],
  ['oauth_transactions', 'they belong to nobody yet; only the people role may read them'],
  ['account_tokens', 'they belong to users; only the people role may read them'],
  ['sign_ups', 'their organization does not exist yet; only the people role may read them'],
  ['sign_in_attempts', 'they belong to no organization; only the people role may read them'],
  ['known_devices', 'they belong to users; only the people role may read them'],
  ['connection_clients', 'programs that registered themselves; only the people role may read them'],
  ['connection_tokens', 'they belong to connections or nobody yet; only the people role may read them'],
  ['sessions', 'they belong to users; only the people role may read them'],
  ['deletions', 'they outlive the organization and contain only ids; only people and workers may read them'],
  ['staff_members', 'they belong to users; the API may read them only as the staff or people role'],
  ['announcements', 'they belong to the service; the API may read them only as the staff or people role'],
  ['processes', 'they belong to the service and have no data of tenants'],
  ['toggles', 'they belong to the service; every process reads them, only staff write them'],
  ['staff_audit_entries', 'they outlive the organizations; the API may read them only as the staff role'],
  ['staff_jobs', 'they concern runs of every organization; the API may read them only as the staff role'],
  ['unattributed_reports', 'their organization is unknown'],
  ['rate_buckets', 'they contain only tokens, by credential or organization id'],
  ['installation', 'it belongs to the installation'],
  ['installation_keys', 'they belong to the installation'],
  ['restores', 'they belong to the installation'],
  ['sweeps', 'when recurring work of the service last ran; contains no data of organizations'],
  ['mikro_orm_migrations', 'it belongs to the schema'],
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

test('every table has a tenant and a policy, or a documented exception', async () => {
  const all = await tables();
  expect(all.length).toBeGreaterThan(20);
  for (const table of all.filter(({ name }) => !WITHOUT_TENANT.has(name))) {
    expect(table).toMatchObject({ secured: true, policies: expect.arrayContaining(['tenant', 'worker']) });
    expect(table.tenantColumn || table.name === 'organizations').toBe(true);
  }
  expect(all.filter(({ name, tenantColumn }) => WITHOUT_TENANT.has(name) && tenantColumn)).toEqual([]);
});

describe('the rows of a tenant', () => {
  let organizationId: string;
  beforeAll(async () => {
    ({ organizationId } = await createRichOrganization(createMemoryStorage(new Map())));
    await addInternalRows(organizationId);
  });

  const tenantTables = async () => (await tables()).filter(({ name }) => !WITHOUT_TENANT.has(name));

  test('exist in every table, without which the tests below could not fail', async () => {
    for (const { name, tenantColumn } of await tenantTables()) {
      const { rows } = await owner.query(
        `select count(*)::int as count from "${name}" where ${tenantColumn ? 'org_id' : 'id'} = $1`,
        [organizationId],
      );
      expect({ name, isEmpty: rows[0].count === 0 }).toEqual({ name, isEmpty: false });
    }
  });

  test.each([
    ['outside a transaction that names an organization', null],
    ['in a transaction that names another organization', newId('organization')],
  ])('are hidden from the API login %s', async (_where, named) => {
    await api.query('begin');
    if (named !== null) await api.query(`select set_config('app.org_id', $1, true)`, [named]);
    for (const { name } of await tenantTables()) {
      const { rows } = await api.query(
        `select has_table_privilege(current_user, '"${name}"', 'select') as readable`,
      );
      if (!rows[0].readable) continue;
      const { rows: seen } = await api.query(`select count(*)::int as count from "${name}"`);
      expect({ name, count: seen[0].count }).toEqual({ name, count: 0 });
    }
    await api.query('rollback');
  });
});

test('the API login neither owns a table nor bypasses row-level security', async () => {
  const { rows } = await api.query(
    `select rolsuper, rolbypassrls, (select count(*)::int from pg_class where relowner = pg_roles.oid) as owned
     from pg_roles where rolname = current_user`,
  );
  expect(rows).toEqual([{ rolsuper: false, rolbypassrls: false, owned: 0 }]);
});
