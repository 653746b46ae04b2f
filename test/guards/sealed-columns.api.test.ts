import { expect, test } from '@jest/globals';
import { sealedColumns } from '../../domain/sealed-columns.ts';
import { usePostgres } from '../support/resources.ts';

/** Columns with bytes that are not encrypted, by what they hold. */
const NOT_ENCRYPTED = new Map(
  Object.entries({
    hash: /(^|_)hash$/,
    digest: /^(sha256|fingerprint)$/,
    'random id of a passkey or its user': /^(credential_id|webauthn_handle)$/,
    'public key': /^public_key$/,
    'id of a stored response': /^idempotency_keys\.id$/,
  }),
);

const owner = usePostgres('ownerUrl');

test('every column with bytes is encrypted and listed for re-encryption, or holds no secret', async () => {
  const { rows } = await owner.query<{ table: string; column: string }>(`
    select table_name as "table", column_name as "column" from information_schema.columns
    where table_schema = 'public' and data_type = 'bytea' order by 1, 2`);
  const listed = new Set(sealedColumns.map(({ table, column }) => `${table}.${column}`));
  const unknown = rows
    .filter(({ table, column }) => !listed.has(`${table}.${column}`))
    .filter(({ table, column }) =>
      [...NOT_ENCRYPTED.values()].every(
        (pattern) => !pattern.test(column) && !pattern.test(`${table}.${column}`),
      ),
    );
  expect(unknown).toEqual([]);
  expect(listed.size).toBeGreaterThan(7);
  for (const name of listed) expect(rows.map(({ table, column }) => `${table}.${column}`)).toContain(name);
});

test('rows are found by their primary key', async () => {
  for (const { table, key } of sealedColumns) {
    const { rows } = await owner.query<{ name: string }>(
      `select a.attname as name from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey)
       where i.indrelid = $1::regclass and i.indisprimary order by array_position(i.indkey::int2[], a.attnum)`,
      [table],
    );
    expect({ table, key: rows.map(({ name }) => name) }).toEqual({ table, key });
  }
});
