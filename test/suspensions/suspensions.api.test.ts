import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { SuspensionTargetType } from '../../domain/suspensions/suspension.entity.ts';
import type { SuspensionTarget } from '../../domain/suspensions/suspension.service.ts';
import { markSettled, overdueSuspensions } from '../../domain/suspensions/suspension-run.ts';
import { createSystemSuspensionService } from '../../domain/suspensions/system-suspension.service.ts';
import { settleSuspensionWorkflowId } from '../../workflows/suspensions/settle-held-work.contract.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { arrangeSuspensions } from '../support/suspensions.ts';

const database = useWorkerDatabase();

async function arrange() {
  const organization = await createOrganization(database);
  const inbox = await createInbox(database, organization);
  const { organizationId, productionEnvironmentId } = organization;
  const ids = { organization: organizationId, environment: productionEnvironmentId, inbox: inbox.id };
  const targetOf = (type: SuspensionTargetType): SuspensionTarget => ({
    type,
    id: ids[type],
    organizationId,
  });
  const tables = { organization: 'organizations', environment: 'environments', inbox: 'inboxes' };
  const statusOf = async (type: SuspensionTargetType) => {
    const [row] = await query<{ status: string }>(
      database,
      sql`select status from ${sql.ref(tables[type])} where id = ${ids[type]}`,
    );
    return row?.status;
  };
  const mail = async () => {
    const rows = await query<{ template: string }>(
      database,
      sql`select template from notifications where org_id = ${organizationId} order by id`,
    );
    return rows.map(({ template }) => template);
  };
  return { organizationId, ids, targetOf, statusOf, mail, ...arrangeSuspensions(database) };
}

describe.each(['organization', 'environment', 'inbox'] as const)('an %s', (type) => {
  test('is suspended until the last reason is lifted, and its owners are mailed', async () => {
    const { targetOf, statusOf, suspend, reinstate, mail } = await arrange();
    const target = targetOf(type);
    await suspend(target, 'abuse');
    await suspend(target, 'payment');
    expect(await statusOf(type)).toBe('suspended');
    expect(await reinstate(target, 'payment')).toMatchObject({ kind: 'reinstated', status: 'suspended' });
    expect(await statusOf(type)).toBe('suspended');
    expect(await reinstate(target, 'abuse')).toMatchObject({ status: 'active' });
    expect(await statusOf(type)).toBe('active');
    expect(await mail()).toEqual(['suspended', 'suspended', 'reinstated']);
  });

  test('is suspended once by two requests, and again after reinstatement', async () => {
    const { targetOf, suspend, reinstate } = await arrange();
    const target = targetOf(type);
    const results = await Promise.allSettled([1, 2, 3].map(() => suspend(target)));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const result of results)
      if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'conflict' });
    const ends = await Promise.allSettled([1, 2].map(() => reinstate(target)));
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    await expect(reinstate(target)).rejects.toMatchObject({ code: 'conflict' });
    await suspend(target);
  });

  test('of another organization is not found', async () => {
    const { targetOf, suspend, reinstate, statusOf } = await arrange();
    const other = await createOrganization(database);
    const target = { ...targetOf(type), organizationId: other.organizationId };
    await expect(suspend(target)).rejects.toMatchObject({ code: 'not_found' });
    await suspend(targetOf(type));
    await expect(reinstate(target)).rejects.toMatchObject({ code: 'not_found' });
    expect(await statusOf(type)).toBe('suspended');
  });
});

test('a suspension and a reinstatement for another reason at the same time leave the status in step', async () => {
  for (let round = 0; round < 5; round += 1) {
    const { targetOf, statusOf, suspend, reinstate } = await arrange();
    const target = targetOf('organization');
    await suspend(target, 'payment');
    await Promise.all([reinstate(target, 'payment'), suspend(target, 'policy')]);
    expect(await statusOf('organization')).toBe('suspended');
    await reinstate(target, 'policy');
    expect(await statusOf('organization')).toBe('active');
  }
});

test('a reinstatement that began before the suspension it lifts is stored after it', async () => {
  const { targetOf, suspend, suspensions } = await arrange();
  const target = targetOf('organization');
  const actor = { kind: 'staff' as const, id: 'usr_staff' };
  const times = (rows: { createdAt: Date; liftedAt: Date | null; changedAt: Date }[]) =>
    rows.map(({ createdAt, liftedAt, changedAt }) => [createdAt, liftedAt ?? changedAt].map(Number));
  const again = await database.systemTransaction(async (transaction) => {
    // The transaction has begun, and waits for the one that suspends.
    await query(transaction, sql`select pg_sleep(0.01)`);
    await suspend(target, 'policy');
    const request = { reason: 'policy' as const, note: 'Test', actor };
    const lifted = await suspensions.reinstate(transaction, target, request);
    return [lifted.suspension, (await suspensions.suspend(transaction, target, request)).suspension];
  });
  const [[created = 0, lifted = 0] = [], [createdAgain = 0] = []] = times(again);
  expect(lifted).toBeGreaterThanOrEqual(created);
  expect(createdAgain).toBeGreaterThanOrEqual(lifted);
});

describe('the service itself', () => {
  test('suspends for payment and lifts only that, once each, and audits it', async () => {
    const { organizationId, targetOf, suspend, suspensions, statusOf } = await arrange();
    const system = createSystemSuspensionService({ suspensions });
    const request = { reason: 'payment' as const, note: 'Invoice in_1 is open.' };
    const run = (method: 'suspend' | 'reinstate') =>
      database.systemTransaction((transaction) => system[method](transaction, organizationId, request));
    await suspend(targetOf('organization'), 'abuse');
    expect([await run('suspend'), await run('suspend')]).toEqual([true, false]);
    expect([await run('reinstate'), await run('reinstate')]).toEqual([true, false]);
    expect(await statusOf('organization')).toBe('suspended');
    const audit = await query(
      database,
      sql`select action, actor_kind as "actorKind", reason from audit_entries where org_id = ${organizationId} order by id`,
    );
    expect(audit).toEqual([
      { action: 'organization.suspended', actorKind: 'system', reason: request.note },
      { action: 'organization.reinstated', actorKind: 'system', reason: request.note },
    ]);
  });
});

describe('the run that settles held work', () => {
  test('starts for abuse and for every reinstatement, each time under an id of its own', async () => {
    const { targetOf, suspend, reinstate, startsOf } = await arrange();
    const target = targetOf('inbox');
    const payment = await suspend(target, 'payment');
    const abuse = await suspend(target, 'abuse');
    const idOf = ({ suspension }: typeof payment, change: 'suspended' | 'reinstated') =>
      settleSuspensionWorkflowId(suspension.id, change);
    expect([startsOf(idOf(payment, 'suspended')), startsOf(idOf(abuse, 'suspended'))]).toEqual([0, 1]);
    await reinstate(target, 'abuse');
    await reinstate(target, 'payment');
    expect([startsOf(idOf(payment, 'reinstated')), startsOf(idOf(abuse, 'reinstated'))]).toEqual([1, 1]);
  });

  test('is started again if it is missing, until it has settled the last change', async () => {
    const { targetOf, suspend, reinstate } = await arrange();
    const { suspension } = await suspend(targetOf('organization'), 'abuse');
    const { id } = suspension;
    const missing = async () => {
      await query(
        database,
        sql`update suspensions set changed_at = now() - interval '1 hour', reconciled_at = null where id = ${id}`,
      );
      const runs = await overdueSuspensions(database).take(10_000);
      return runs.flatMap(({ start }) => (start.workflowId.includes(id) ? [start.workflowId] : []));
    };
    expect(await missing()).toEqual([settleSuspensionWorkflowId(id, 'suspended')]);
    await reinstate(targetOf('organization'), 'abuse');
    // A late run of the suspension does not settle its end.
    await markSettled(database, { id, change: 'suspended' });
    expect(await missing()).toEqual([settleSuspensionWorkflowId(id, 'reinstated')]);
    await markSettled(database, { id, change: 'reinstated' });
    expect(await missing()).toEqual([]);
  });
});
