import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { nameOfPrepared, PREPARED } from '../../platform/database/prepared.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();
const api = useApiDatabase();

interface Prepared {
  calls: number;
  statement: string;
}

test('a marked statement is prepared once for its connection', async () => {
  await database.systemTransaction(async ({ db }) => {
    const findTier = (id: string) =>
      db.selectFrom('organizations').select('tier').where('id', '=', id).modifyEnd(PREPARED).execute();
    for (const id of ['org_1', 'org_2', 'org_3']) await findTier(id);
    await db.selectFrom('organizations').select('name').where('id', '=', 'org_1').execute();
    const { rows } = await sql<Prepared>`
      select statement, (generic_plans + custom_plans)::int as calls from pg_prepared_statements
      where statement like '%organizations%' order by statement`.execute(db);
    expect(rows).toEqual([
      { statement: expect.stringMatching(/^select "tier" .* \/\* prepared \*\/$/), calls: 3 },
    ]);
  });
});

test('a prepared statement shows each organization its own rows', async () => {
  const organizations = [await createOrganization(database), await createOrganization(database)];
  const inboxes = await Promise.all(organizations.map((organization) => createInbox(database, organization)));
  // More often than PostgreSQL makes a plan for each value.
  for (let round = 0; round < 8; round += 1)
    for (const [index, { organizationId }] of organizations.entries()) {
      const rows = await api.transaction({ organizationId }, ({ db }) =>
        db.selectFrom('inboxes').select('id').modifyEnd(PREPARED).execute(),
      );
      expect(rows).toEqual([{ id: inboxes[index]?.id }]);
    }
});

test('a text that depends on values prepares a limited number of statements', () => {
  expect(nameOfPrepared('select 1')).toBeUndefined();
  const names = Array.from({ length: 300 }, (_, id) => nameOfPrepared(`select ${id} /* prepared */`));
  expect(new Set(names.filter(Boolean)).size).toBeLessThanOrEqual(100);
  expect(names[299]).toBeUndefined();
  expect(nameOfPrepared('select 0 /* prepared */')).toBe(names[0]);
});
