import { afterAll, beforeAll, expect, test } from '@jest/globals';
import pg from 'pg';
import { pino } from 'pino';
import { createKeyAuthenticator } from '../../domain/api-keys/key-authenticator.ts';
import { createFirstOrganization } from '../../domain/bootstrap/first-organization.ts';
import { AGENT_PERMISSIONS, KEY_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { MemberEntity } from '../../domain/organizations/member.entity.ts';
import { OrganizationEntity } from '../../domain/organizations/organization.entity.ts';
import { UserEntity } from '../../domain/people/user.entity.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createDatabase, type Database } from '../../platform/database/database.ts';
import { migrate } from '../../workers/migrate.ts';
import { testStack } from '../support/stack.ts';

const EMPTY = 'first_organization';
let database: Database;
let api: Database;

/** A separate database: the shared one contains organizations of other tests. */
beforeAll(async () => {
  const { ownerUrl, apiUrl, workerUrl } = testStack().postgres;
  const owner = new pg.Client({ connectionString: ownerUrl });
  await owner.connect();
  await owner.query(`create database ${EMPTY}`);
  await owner.end();
  const inEmpty = (url: string) => Object.assign(new URL(url), { pathname: `/${EMPTY}` }).toString();
  await migrate({ migrationUrl: inEmpty(ownerUrl), apiUrl: inEmpty(apiUrl), workerUrl: inEmpty(workerUrl) });
  const connect = (url: string) => createDatabase({ url: inEmpty(url), poolSize: 5 });
  [database, api] = await Promise.all([connect(workerUrl), connect(apiUrl)]);
});
afterAll(() => Promise.all([database.close(), api.close()]));

test('creates the organization once, completely, for concurrent attempts', async () => {
  const input = { organizationName: 'Acme & Söhne', ownerEmail: 'Owner@Example.test' };
  const attempts = await Promise.all(
    Array.from({ length: 4 }, () => createFirstOrganization(database, input)),
  );
  const [made, ...others] = attempts.filter((attempt) => attempt !== null);
  expect(others).toEqual([]);
  if (!made) throw new Error('none was made');
  expect(await createFirstOrganization(database, input)).toBeNull();

  await database.systemTransaction(async ({ db }) => {
    expect(
      await db.selectFrom('organizations').select(columnsOf(OrganizationEntity)).execute(),
    ).toMatchObject([{ name: 'Acme & Söhne', slug: 'acme-sohne', status: 'active' }]);
    expect(await db.selectFrom('users').select(columnsOf(UserEntity)).execute()).toMatchObject([
      { email: 'owner@example.test', passwordHash: expect.stringMatching(/^\$argon2id\$/) },
    ]);
    expect(await db.selectFrom('members').select(columnsOf(MemberEntity)).execute()).toMatchObject([
      { organizationId: made.organizationId, role: 'owner' },
    ]);
  });

  const authentication = createKeyAuthenticator({ database: api, logger: pino({ level: 'silent' }) });
  const as = async (token: string, environmentId?: string) =>
    (
      await authentication.authenticate({
        token,
        environmentId,
        organizationId: undefined,
        resourceId: undefined,
        ip: '192.0.2.1',
        requestId: 'req',
      })
    ).scope;
  const whole = await as(made.apiKey);
  expect([...whole.permissions]).toEqual([...KEY_PERMISSIONS]);
  expect(whole).toMatchObject({ environmentId: made.productionEnvironmentId, environmentBound: false });
  expect(await as(made.apiKey, made.sandboxEnvironmentId)).toMatchObject({
    environmentId: made.sandboxEnvironmentId,
  });
  const agent = await as(made.agentKey);
  expect([...agent.permissions]).toEqual([...AGENT_PERMISSIONS]);
  expect(agent).toMatchObject({ environmentId: made.productionEnvironmentId, environmentBound: true });
});
