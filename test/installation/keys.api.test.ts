import { expect, test } from '@jest/globals';
import pg from 'pg';
import { replaceRecoveryCodes, useRecoveryCode } from '../../domain/people/recovery-codes.ts';
import { sealedColumns } from '../../domain/sealed-columns.ts';
import { createSecretBox, createSigner, listKeyIds } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { checkInstallation } from '../../platform/installation/check-installation.ts';
import type { SealedColumn, SealedRowKey } from '../../platform/sealed-column.ts';
import { reencryptAll } from '../../workers/reencrypt-keys.ts';
import { useIsolatedDatabase } from '../support/resources.ts';
import { testStack } from '../support/stack.ts';
import { connect } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

const NAME = 'installation_keys_test';
const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const OLD = key(1);
const NEW = key(2);
const OTHER = key(3);
const idOf = (text: string) => listKeyIds(text, 'TEST')[0];
const logger = { warn: () => undefined };
const keys = (ENCRYPTION_KEY: string, SIGNING_KEY = OLD) => ({ ENCRYPTION_KEY, SIGNING_KEY });

const within = (url: string) => Object.assign(new URL(url), { pathname: `/${NAME}` }).toString();
const worker = useIsolatedDatabase(NAME);
const owner = useResource(
  () => connect(within(testStack().postgres.ownerUrl)),
  (database) => database.close(),
);
const api = useResource(
  () => connect(within(testStack().postgres.apiUrl)),
  (database) => database.close(),
);
const client = useResource(
  async () => {
    const connected = new pg.Client({ connectionString: within(testStack().postgres.ownerUrl) });
    await connected.connect();
    // Rows without the rows that they refer to, which have no secrets.
    await connected.query('set session_replication_role = replica');
    return connected;
  },
  (connected) => connected.end(),
);

/** The other columns of a row without a default. */
const FILLED: Record<string, Record<string, unknown>> = {
  idempotency_keys: { org_id: 'org_1', request_hash: 'x', status: 200, content_type: 'text/plain' },
  dkim_keys: { org_id: 'org_1', state: 'active', public_key: 'x' },
  notifications: { email: 'a@b.test', template: 'x', params: '{}', dedupe_key: 'x' },
  mfa_enrollments: { user_id: 'usr_1', type: 'totp', name: 'x' },
  sso_configurations: {
    org_id: 'org_1',
    type: 'oidc',
    name: 'x',
    domains: '{}',
    default_role: 'viewer',
    updated_at: 'now',
  },
  sso_transactions: {
    org_id: 'org_1',
    configuration_id: 'sso_1',
    configuration_version: 1,
    purpose: 'login',
    browser_hash: 'x',
    redirect_to: '/',
    expires_at: 'now',
  },
  webhook_endpoints: {
    org_id: 'org_1',
    env_id: 'env_1',
    url: 'https://x.test',
    events: '{}',
    secret: 'x',
    updated_at: 'now',
  },
};

/** Inserts a row, in which only this column is encrypted. */
async function insert(
  column: SealedColumn,
  id: string,
  keysBase64: string,
  plaintext: string,
): Promise<SealedRowKey> {
  const isBytes = column.table === 'idempotency_keys' || column.table === 'sso_transactions';
  const rowKey: SealedRowKey = Object.fromEntries(
    column.key.map((name) => [name, isBytes ? Buffer.from(id) : `${name}_${id}`]),
  );
  const sealed = createSecretBox(keysBase64).seal(plaintext, column.context(rowKey));
  const filled = FILLED[column.table] ?? {};
  const unique = column.table === 'notifications' ? { dedupe_key: id } : {};
  // The other encrypted column of the same row must not count as one that is left.
  const secret = 'secret' in filled ? { secret: createSecretBox(NEW).seal('x', 'x') } : {};
  const row = { ...filled, ...unique, ...secret, created_at: 'now', ...rowKey, [column.column]: sealed };
  const names = Object.keys(row);
  await client.query(
    `insert into ${column.table} (${names.join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
    Object.values(row),
  );
  return rowKey;
}

async function open(column: SealedColumn, rowKey: SealedRowKey, keysBase64: string): Promise<string> {
  const { rows } = await client.query<{ sealed: Buffer }>(
    `select ${column.column} as sealed from ${column.table} where ${column.key
      .map((name, index) => `${name} = $${index + 1}`)
      .join(' and ')}`,
    Object.values(rowKey),
  );
  return createSecretBox(keysBase64).open(rows[0]?.sealed ?? Buffer.alloc(0), column.context(rowKey));
}

const check = (database: Database, config: ReturnType<typeof keys>) =>
  checkInstallation(database, config, logger);

test('rotates the encryption key: the new one is read first, then writes, then replaces the old one everywhere', async () => {
  await check(api, keys(OLD));
  const rows = new Map<SealedColumn, SealedRowKey[]>();
  for (const column of sealedColumns) {
    // More than one batch in one table.
    const count = column.table === 'idempotency_keys' ? 501 : 2;
    const inserted: SealedRowKey[] = [];
    for (let index = 0; index < count; index += 1)
      inserted.push(await insert(column, `${column.column}${index}`, OLD, `plain ${index}`));
    rows.set(column, inserted);
  }

  // A process with another key does not start, whichever role it has; one with both does, in either order.
  for (const database of [api, worker])
    await expect(check(database, keys(NEW))).rejects.toThrow(
      `ENCRYPTION_KEY is wrong or incomplete: values of this database are encrypted with the key ${idOf(OLD)}, but ENCRYPTION_KEY lists ${idOf(NEW)}.`,
    );
  await check(worker, keys(`${OLD},${NEW}`));
  await check(api, keys(`${NEW},${OLD}`));

  const result = await reencryptAll(owner, keys(`${NEW},${OLD}`));
  expect(result).toMatchObject({ remaining: 0, removable: [idOf(OLD)] });
  expect(result.columns.map(({ reencrypted }) => reencrypted)).toEqual(
    sealedColumns.map(({ table }) => (table === 'idempotency_keys' ? 501 : 2)),
  );
  for (const [column, inserted] of rows)
    for (const [index, rowKey] of inserted.slice(0, 2).entries())
      expect(await open(column, rowKey, NEW)).toBe(`plain ${index}`);

  // The old key is not needed any more, and alone is not enough.
  await check(api, keys(NEW));
  await expect(check(api, keys(OLD))).rejects.toThrow('ENCRYPTION_KEY is wrong or incomplete');
  const repeated = await reencryptAll(owner, keys(NEW));
  expect(repeated.columns.every(({ reencrypted }) => reencrypted === 0)).toBe(true);
});

test('keeps the old key required while a value of it cannot be read, and counts such values by reason', async () => {
  const [column] = sealedColumns as [SealedColumn];
  await insert(column, 'foreign', OTHER, 'plain');
  await insert(column, 'late', OLD, 'plain');
  const damaged = await insert(column, 'damaged', OLD, 'plain');
  await client.query(`update ${column.table} set ${column.column} = $1 where id = $2`, [
    Buffer.concat([createSecretBox(OLD).currentPrefix, Buffer.alloc(40)]),
    damaged.id,
  ]);
  const result = await reencryptAll(owner, keys(`${NEW},${OLD}`));
  expect(result).toMatchObject({ remaining: 2, removable: [] });
  expect(result.columns[0]).toMatchObject({
    reencrypted: 1,
    unreadable: {
      [`encrypted with the key ${idOf(OTHER)}, which ENCRYPTION_KEY does not list`]: 1,
      'damaged, or encrypted with a key that ENCRYPTION_KEY does not list': 1,
    },
  });
});

test('names a wrong signing key; an older one may be removed', async () => {
  await expect(check(api, keys(NEW, OTHER))).rejects.toThrow(
    `SIGNING_KEY is wrong: this database was used with the key ${idOf(OLD)}, but SIGNING_KEY lists ${idOf(OTHER)}.`,
  );
  await check(api, keys(NEW, `${OTHER},${OLD}`));
  await check(api, keys(NEW, OTHER));
});

test('a recovery code of an older signing key remains valid while that key is listed, and works once', async () => {
  const user = { id: newId('user'), email: 'ada@keys.test' };
  await client.query(
    'insert into users (id, email, created_at, updated_at) values ($1, $2, now(), now())',
    Object.values(user),
  );
  const signer = (keysBase64: string) => createSigner(keysBase64, 'recovery-code');
  const use = (keysBase64: string, code: string) =>
    owner.systemTransaction(({ db }) => useRecoveryCode(db, signer(keysBase64), { userId: user.id, code }));
  const [code = ''] = await owner.systemTransaction(({ db }) =>
    replaceRecoveryCodes(db, signer(OLD), user.id),
  );
  expect(await use(NEW, code)).toBe(false);
  expect(await use(`${NEW},${OLD}`, code)).toBe(true);
  expect(await use(`${NEW},${OLD}`, code)).toBe(false);
});

test('refuses a database that lacks migrations of this version, and accepts one of a later version', async () => {
  await client.query(`insert into mikro_orm_migrations (name) values ('Migration29991231000000_later')`);
  await check(api, keys(NEW));
  const { rows } = await client.query<{ name: string }>(
    `delete from mikro_orm_migrations where name = (select max(name) from mikro_orm_migrations where name < 'Migration2999') returning name`,
  );
  for (const database of [api, worker])
    await expect(check(database, keys(NEW))).rejects.toThrow(
      `The database lacks 1 migration(s) of this version (first: ${rows[0]?.name}). Run \`npm run migrate\` before this process starts.`,
    );
});
