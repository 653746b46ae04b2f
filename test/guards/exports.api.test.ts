import { beforeAll, describe, expect, test } from '@jest/globals';
import { EXPORTED_TABLES, NOT_EXPORTED } from '../../domain/exports/exported-tables.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { usePostgres } from '../support/resources.ts';
import { createRichOrganization } from '../support/rich-organization.ts';

const owner = usePostgres('ownerUrl');
const columns = new Map<string, string[]>();

beforeAll(async () => {
  const { rows } = await owner.query(
    `select c.relname as name, array_agg(a.attname::text) as columns from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and a.attnum > 0 and not a.attisdropped
     group by c.relname`,
  );
  for (const row of rows) columns.set(row.name, row.columns);
});

describe('an export', () => {
  test('contains every table, or states why not (domain/exports/exported-tables.ts)', () => {
    const named = [...EXPORTED_TABLES.map(({ table }) => table), ...Object.keys(NOT_EXPORTED)];
    expect(columns.size).toBeGreaterThan(30);
    expect(named.sort()).toEqual([...columns.keys()].sort());
  });

  test('contains every column of its tables, or states why not', () => {
    for (const { table, columns: plain, derived = {}, omitted = {} } of EXPORTED_TABLES) {
      const sourceColumns = Object.values(derived).flatMap((field) => field.of);
      // An archive contains one organization, so org_id is omitted.
      const named = [
        ...plain,
        ...sourceColumns,
        ...Object.keys(omitted),
        ...(table === 'organizations' ? [] : ['org_id']),
      ];
      expect({ table, columns: named.sort() }).toEqual({ table, columns: columns.get(table)?.sort() });
    }
  });

  test('uses a role that cannot write, read secrets of users, or see any organization by default', async () => {
    const role = 'agent_email_export';
    const { rows } = await owner.query(
      `select rolcanlogin, rolsuper, rolbypassrls, has_column_privilege($1, 'users', 'password_hash', 'select') as secret
       from pg_roles where rolname = $1`,
      [role],
    );
    expect(rows).toEqual([{ rolcanlogin: false, rolsuper: false, rolbypassrls: false, secret: false }]);
    const { organizationId } = await createRichOrganization(createMemoryStorage(new Map()));
    for (const { table } of EXPORTED_TABLES) {
      const column = table === 'organizations' ? 'id' : 'org_id';
      const { rows: stored } = await owner.query(
        `select count(*)::int as count from "${table}" where ${column} = $1`,
        [organizationId],
      );
      // Without rows, the check below could not fail.
      expect({ table, isEmpty: stored[0].count === 0 }).toEqual({ table, isEmpty: false });
    }
    await owner.query('begin');
    await owner.query(`set local role ${role}`);
    for (const { table } of EXPORTED_TABLES) {
      const { rows: seen } = await owner.query(`select count(*)::int as count from "${table}"`);
      expect({ table, seen: seen[0].count }).toEqual({ table, seen: 0 });
    }
    await owner.query('rollback');
  });
});
