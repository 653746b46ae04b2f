import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

/** Columns by which no credential loses its access. Every other change ends the responses that stay open with it. */
const HARMLESS: Record<string, string[]> = {
  api_keys: [
    // Never change.
    'id',
    'org_id',
    'env_id',
    'inbox_id',
    'created_by_key_id',
    'created_by_user_id',
    'created_at',
    // Only shown.
    'name',
    'last_four',
    'previous_last_four',
    'last_used_at',
    'last_used_from',
    'previous_last_used_at',
    'expiry_notified_at',
  ],
  environments: ['id', 'org_id', 'name', 'slug', 'kind', 'created_at', 'updated_at'],
  sessions: [
    'id',
    'user_id',
    'token_hash',
    'method',
    'sso_configuration_id',
    'authenticated_at',
    'expires_at',
    'ip',
    'user_agent',
    'last_seen_at',
    'created_at',
    // A second factor only adds access.
    'kind',
    'factors',
  ],
  members: ['org_id', 'user_id', 'created_at'],
  staff_members: ['user_id', 'created_by', 'created_at'],
  impersonations: [
    'id',
    'org_id',
    'staff_id',
    'staff_session_id',
    'token_hash',
    'reason',
    'allows_write',
    'expires_at',
    'ip',
    'request_id',
    'reported_at',
    'created_at',
  ],
};

/** The other tables contain much that has nothing to do with access; what decides it is listed here. */
const DECISIVE: Record<string, string[]> = {
  connections: ['ended_at'],
  organizations: ['status', 'deleted_at'],
  inboxes: ['status'],
  users: ['status', 'deleted_at'],
  sso_configurations: ['status'],
};

test('responses that stay open check their credential when anything changes that decides its access', async () => {
  const triggers = await query<{ table: string; definition: string }>(
    app.worker,
    sql`select c.relname as table, pg_get_triggerdef(t.oid) as definition
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
    where p.proname = 'signal_access' and pg_get_triggerdef(t.oid) like '% AFTER UPDATE %'
      and pg_get_triggerdef(t.oid) like '% WHEN %'`,
  );
  const tables = triggers.map(({ table }) => table).sort();
  expect(tables).toEqual([...Object.keys(HARMLESS), ...Object.keys(DECISIVE)].sort());
  for (const { table, definition } of triggers) {
    const watched = [...new Set(definition.match(/(?<=old\.)\w+/gi))].sort();
    if (DECISIVE[table]) expect({ table, watched }).toEqual({ table, watched: DECISIVE[table].sort() });
    else expect({ table, watched }).toEqual({ table, watched: await otherColumns(table) });
  }
});

async function otherColumns(table: string): Promise<string[]> {
  const rows = await query<{ name: string }>(
    app.worker,
    sql`select column_name as name from information_schema.columns where table_schema = 'public' and table_name = ${table}`,
  );
  const names = rows.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(HARMLESS[table] ?? []));
  return names.filter((name) => !HARMLESS[table]?.includes(name)).sort();
}
