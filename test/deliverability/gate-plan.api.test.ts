import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { selectRecipientRestrictions } from '../../domain/deliverability/recipient-restrictions.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

const ENTRIES = 5_000;
/** PostgreSQL compiles plans above this cost (`jit_above_cost`), which would take longer than running them. */
const JIT_COST = 100_000;

test('looks up 50 recipients by index in long lists that were never analyzed', async () => {
  const own = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, own);
  const { organizationId } = own;
  await app.worker.systemTransaction(async ({ db }) => {
    await sql`insert into suppressions (id, org_id, scope_id, email, origin, created_at)
       select 'sup_' || n || ${organizationId}::text, ${organizationId}, ${organizationId}, n || '@people.example', 'manual', now() from generate_series(1, ${ENTRIES}::int) n`.execute(
      db,
    );
    await sql`insert into list_entries (id, org_id, direction, effect, entry, created_at)
       select 'lse_' || n || ${organizationId}::text, ${organizationId}, 'send', 'block', n || '.example', now() from generate_series(1, ${ENTRIES}::int) n`.execute(
      db,
    );
  });
  const recipients = Array.from({ length: 50 }, (_, index) => `${index}@mail.p${index}.example`);
  const restrictions = selectRecipientRestrictions(
    sql`select value as email from jsonb_array_elements_text(${JSON.stringify(recipients)}::jsonb)`,
  );
  const rows = await app.database.transaction({ organizationId }, ({ db }) =>
    db
      .selectFrom('inboxes as i')
      .select(restrictions.as('restrictions'))
      .where('i.id', '=', inbox.id)
      .explain<{ 'QUERY PLAN': string }>(),
  );
  const plan = rows.map((row) => row['QUERY PLAN']).join('\n');
  expect(plan).toMatch(/using suppressions_org_id_email_scope_id_unique/);
  expect(plan).toMatch(/using list_entries_unique .*\n.*Index Cond: .*direction.*entry = k\.entry/);
  // There may be so few inboxes that PostgreSQL scans the table.
  expect(plan.replace('Seq Scan on inboxes i', '')).not.toContain('Seq Scan');
  expect(Number(/cost=[\d.]+\.\.([\d.]+)/.exec(plan)?.[1])).toBeLessThan(JIT_COST);
});
