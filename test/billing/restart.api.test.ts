import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { sql } from 'kysely';
import { pino } from 'pino';
import { createMaintenanceActivities } from '../../activities/maintenance.activities.ts';
import { advanceClock, attemptPayment } from '../../dev/stripe-stand-in/billing-cycle.ts';
import { overdueGraces, overdueReadBacks } from '../../domain/billing/overdue-billing.ts';
import type { OutboxCommand } from '../../platform/outbox/outbox-command.ts';
import type { OverdueSource } from '../../platform/outbox/overdue-rows.ts';
import { createWorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';
import { enforcePaymentGraceWorkflowId } from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { syncSubscriptionWorkflowId } from '../../workflows/billing/sync-subscription.contract.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import { eventually } from '../support/eventually.ts';
import { query } from '../support/query.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { useWorkflowEnvironment } from '../support/use-workflow-environment.ts';
import { type BillingApp, startBillingApp } from './billing-app.ts';

/** With a Temporal server, whose runs are really terminated: the reconciler has to notice it, and to start them again. */
const environment = useWorkflowEnvironment();
let app: BillingApp;
beforeAll(async () => {
  // Longer than a read-back is held here.
  app = await startBillingApp({ STRIPE_TIMEOUT_MS: '50000' });
});
afterAll(() => app.stop());

const DAY_S = 86_400;

/** The reconciler, for one subscription: the database has rows of other tests. */
function createReconciler(subscriptionId: string) {
  const workflows = createWorkflowGateway(environment.temporal.client);
  const only = ({ name, take }: OverdueSource): OverdueSource => ({
    name,
    take: async (limit) =>
      (await take(limit)).filter(({ start }) => start.workflowId.includes(subscriptionId)),
  });
  const { reconcileOverdue } = createMaintenanceActivities({
    outbox: recordingOutbox().outbox,
    workflows,
    sources: [overdueReadBacks(app.worker), overdueGraces(app.worker)].map(only),
    findLastRestore: async () => null,
    sweeps: {},
    recordSweep: async () => undefined,
    logger: pino({ level: 'silent' }),
  });
  /** Dispatches what was committed since the last call. */
  const dispatch = async () => {
    for (const command of [...app.commands.splice(0), ...app.workCommands.splice(0)])
      if (JSON.stringify(command).includes(subscriptionId)) await workflows.dispatch(onlyBilling(command));
  };
  return { dispatch, reconcile: () => new MockActivityEnvironment().run(reconcileOverdue) };
}

const onlyBilling = ({ start, signal }: OutboxCommand): OutboxCommand => ({
  ...(start ? { start } : {}),
  ...(signal ? { signal } : {}),
});

const describe = async (workflowId: string) => {
  const { status, runId } = await environment.temporal.client.workflow.getHandle(workflowId).describe();
  return { status: status.name, runId };
};
const terminate = (workflowId: string) =>
  environment.temporal.client.workflow.getHandle(workflowId).terminate('Test');

/** Makes the rows as old as the reconciler waits for. */
async function age(subscriptionId: string): Promise<void> {
  await query(
    app.worker,
    sql`update payment_graces set next_step_at = now() - interval '20 minutes', reconciled_at = null
    where subscription_id = ${subscriptionId} and closed_at is null returning id`,
  );
  await query(
    app.worker,
    sql`update billing_subscriptions set requested_at = now() - interval '20 minutes', reconciled_at = null
    where id = ${subscriptionId} and requested_at is not null returning id`,
  );
}

test('a run of billing that was terminated starts again, and does nothing twice', async () => {
  const paying = await app.createPaying();
  const { id } = paying.subscription;
  const { dispatch, reconcile } = createReconciler(id);
  const syncRun = syncSubscriptionWorkflowId(id);
  const graceRun = enforcePaymentGraceWorkflowId(paying.organizationId, id, 1);
  const suspensions = async () =>
    (await query(app.worker, sql`select id from suspensions where org_id = ${paying.organizationId}`)).length;
  const isClosed = (workflowId: string) =>
    eventually(async () => expect((await describe(workflowId)).status).toBe('COMPLETED'));
  app.commands.length = 0;
  app.workCommands.length = 0;

  // The read-back is terminated while Stripe does not answer.
  await environment.withWorker(
    MAINTENANCE_QUEUE,
    app.activities,
    async () => {
      app.setCard(paying.subscription, 'declined');
      advanceClock(app.ledger, 30 * DAY_S);
      const { promise: held, resolve: answer } = Promise.withResolvers<void>();
      let asked = 0;
      app.standIn.intercept = (operation, subscriptionId) => {
        if (operation !== 'GET /v1/subscriptions/:id' || subscriptionId !== id) return undefined;
        asked += 1;
        return asked === 1 ? held : undefined;
      };
      for (const event of app.ledger.events.splice(0)) await app.deliver(event);
      await dispatch();
      await eventually(() => expect(asked).toBe(1));
      const firstSync = await describe(syncRun);
      await terminate(syncRun);
      await age(id);
      await reconcile();
      await isClosed(syncRun);
      answer();
      expect((await describe(syncRun)).runId).not.toBe(firstSync.runId);
      expect(await app.stateOf(paying)).toMatchObject({ subscription: 'past_due', grace: 'waiting' });
    },
    { signalsWhileExecuting: true },
  );

  // The grace is terminated between two reviews: one that is under way could suspend in place of the new run's.
  await environment.withWorker(MAINTENANCE_QUEUE, app.activities, async () => {
    // The first time is before the suspension.
    await dispatch();
    await eventually(async () => expect((await describe(graceRun)).status).toBe('RUNNING'));
    const firstGrace = await describe(graceRun);
    await terminate(graceRun);
    advanceClock(app.ledger, 16 * DAY_S);
    app.ledger.events.length = 0;
    await age(id);
    await reconcile();
    await eventually(async () => expect(await app.stateOf(paying)).toMatchObject({ status: 'suspended' }));
    expect((await describe(graceRun)).runId).not.toBe(firstGrace.runId);

    // And after it.
    await terminate(graceRun);
    await age(id);
    await reconcile();
    await eventually(async () => {
      const [grace] = await query<{ isStepped: boolean }>(
        app.worker,
        sql`select next_step_at > now() as "isStepped" from payment_graces where subscription_id = ${id}`,
      );
      expect(grace).toEqual({ isStepped: true });
    });
    expect(await suspensions()).toBe(1);

    app.setCard(paying.subscription, 'works');
    for (const invoice of app.invoicesOf(paying.subscription, 'open')) attemptPayment(app.ledger, invoice);
    for (const event of app.ledger.events.splice(0)) await app.deliver(event);
    await dispatch();
    await isClosed(syncRun);
    await dispatch();
    await isClosed(graceRun);
  });
  expect(await app.stateOf(paying)).toMatchObject({ status: 'active', grace: 'recovered' });
  expect(await suspensions()).toBe(1);
  expect(await app.emailsOf(paying)).toEqual(['payment-failed', 'suspended', 'reinstated']);
}, 120_000);
