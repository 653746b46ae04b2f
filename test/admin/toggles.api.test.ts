import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { releaseSwitchedOffSends } from '../../domain/outbound/held-sends.ts';
import { overdueMessages } from '../../domain/outbound/overdue-sends.ts';
import { createMailIntake } from '../../domain/providers/mail-intake.service.ts';
import { TOGGLE_NAMES, type ToggleName } from '../../domain/toggles/toggles.ts';
import { releaseSwitchedOffDeliveries } from '../../domain/webhooks/release-held-deliveries.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { sendMessageWorkflowId } from '../../workflows/outbound/send-message.contract.ts';
import { cleanUpAfterEach, greeted, listen } from '../inbound/test-listener.ts';
import { readAccountMail } from '../support/account-mail.ts';
import {
  createAccount,
  createAccountQuickly,
  newAddress,
  newNetwork,
  PASSWORD,
  signIn,
} from '../support/accounts.ts';
import { createDatabaseUrls } from '../support/isolated-database.ts';
import { createTestReceiptService } from '../support/mail-services.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce, readMessageState } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import { recordingOutbox, type TestApp } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';

cleanUpAfterEach();

// Toggles hold for a whole database, and other files run beside this one.
const urls = useResource(
  () => createDatabaseUrls('toggles'),
  async () => undefined,
);
const config = { TRUST_PROXY: '127.0.0.1' };
const own = () => ({ config, databaseUrl: urls.apiUrl, workerUrl: urls.workerUrl });
/** Staff change the toggles here. The other two processes, an API and a worker, share only the database. */
const app = useTestApp(own);
const otherApp = useTestApp(own);
const worker = () => otherApp.worker;

async function set(name: ToggleName, enabled: boolean, token?: string) {
  const staff = token ?? (await createStaff(app)).token;
  return app.call(`/admin/toggles/${name}`, {
    method: 'PUT',
    token: staff,
    body: { enabled, note: 'An incident' },
  });
}

/** Runs the test with the toggle off. */
async function whileOff(name: ToggleName, work: () => Promise<void>): Promise<void> {
  expect((await set(name, false)).statusCode).toBe(200);
  try {
    await work();
  } finally {
    expect((await set(name, true)).statusCode).toBe(200);
  }
}

const lastStart = ({ commands }: TestApp): StartCommand | undefined => commands.at(-1)?.start;

describe('the list of toggles', () => {
  test('describes each one, and who changed it last and why', async () => {
    const { token, userId } = await createStaff(app);
    const before = (await app.call('/admin/toggles', { token })).json().data;
    expect(before.map(({ name }: { name: string }) => name)).toEqual(TOGGLE_NAMES);
    for (const toggle of before)
      expect(toggle).toMatchObject({
        enabled: true,
        description: expect.stringMatching(/^Whether /),
        when_off: expect.stringMatching(/\.$/),
        changed_at: null,
      });

    expect((await set('inbox_creation', false, token)).json()).toMatchObject({
      name: 'inbox_creation',
      enabled: false,
      note: 'An incident',
      changed_by: userId,
      changed_at: expect.any(String),
    });
    const { data } = (await otherApp.call('/admin/toggles', { token })).json();
    expect(data.filter(({ enabled }: { enabled: boolean }) => !enabled)).toEqual([
      expect.objectContaining({ name: 'inbox_creation', note: 'An incident' }),
    ]);
    await set('inbox_creation', true, token);
    const log = (
      await app.call(`/admin/audit-log?resource_id=inbox_creation&staff_id=${userId}`, { token })
    ).json();
    expect(log.data).toMatchObject([
      { action: 'toggle.switched_on', reason: 'An incident', details: { before: false, enabled: true } },
      { action: 'toggle.switched_off', details: { before: true, enabled: false } },
    ]);
  });

  test('can be read by support, and changed only by admins, with a reason', async () => {
    const support = await createStaff(app, { role: 'support' });
    expect((await app.call('/admin/toggles', { token: support.token })).statusCode).toBe(200);
    expectProblem(await set('sending', false, support.token), 'permission_denied');
    const { token } = await createStaff(app);
    const put = (path: string, body: unknown) => app.call(path, { method: 'PUT', token, body });
    expectProblem(await put('/admin/toggles/sending', { enabled: false }), 'validation_error');
    expectProblem(await put('/admin/toggles/unknown', { enabled: false, note: 'x' }), 'validation_error');
  });
});

describe('off', () => {
  test('sign_up refuses new accounts, also those that only lack the confirmation; others sign in', async () => {
    const email = newAddress();
    const signUp = (address: string) =>
      otherApp.call('/auth/signup', {
        method: 'POST',
        headers: newNetwork(),
        body: { email: address, password: PASSWORD, name: 'Ada', organization_name: 'Engines' },
      });
    const account = await createAccountQuickly(otherApp);
    expect((await signUp(email)).statusCode).toBe(202);
    const mailed = (await readAccountMail(otherApp, email)).at(-1);
    await whileOff('sign_up', async () => {
      expect(expectProblem(await signUp(newAddress()), 'switched_off')).toMatchObject({ toggle: 'sign_up' });
      const verified = await otherApp.call('/auth/verify-email', {
        method: 'POST',
        headers: newNetwork(),
        body: { token: mailed?.token, password: PASSWORD },
      });
      expectProblem(verified, 'switched_off');
      expect((await signIn(otherApp, account.email)).statusCode).toBe(200);
    });
    await createAccount(otherApp);
  });

  test('inbox_creation refuses new inboxes and returns existing ones', async () => {
    const { token } = await createOrganization(worker());
    const create = (client_id: string) =>
      otherApp.call('/inboxes', { method: 'POST', token, body: { client_id } });
    expect((await create('first')).statusCode).toBe(201);
    await whileOff('inbox_creation', async () => {
      expectProblem(await create('second'), 'switched_off');
      expect((await create('first')).statusCode).toBe(200);
    });
    expect((await create('second')).statusCode).toBe(201);
  });

  test('sending accepts messages and holds them, and rejects what will never be sent; on releases them', async () => {
    const setup = await arrangeSending(worker());
    const waiting = await setup.send('ada@people.example');
    const { outbox, commands } = recordingOutbox();
    const release = () =>
      worker().systemTransaction((transaction) => releaseSwitchedOffSends(transaction, outbox));
    let id = '';
    await whileOff('sending', async () => {
      id = await setup.send('bea@people.example');
      expect(await dispatchOnce(setup, waiting)).toBe('held');
      expect(await dispatchOnce(setup, id)).toBe('held');
      expect(setup.transport.transmissions).toEqual([]);
      const held = await readMessageState(worker(), id);
      expect([held.status, held.recipients, held.types]).toEqual(['queued', ['pending'], []]);
      expect(held.message.statusDetail).toContain('switched sending off');
      expect(await release()).toBe(0);
      await query(
        worker(),
        sql`update messages set updated_at = now() - interval '1 hour' where id = ${id} returning id`,
      );
      const overdue = await overdueMessages(worker(), setup.outcomes).take(1_000);
      expect(overdue.map(({ start }) => start.workflowId)).not.toContain(sendMessageWorkflowId(id));
    });
    expect(lastStart(app)).toMatchObject({ workflowType: 'releaseHeld', input: { toggle: 'sending' } });
    expect(await Promise.all([release(), release()])).toEqual(expect.arrayContaining([2, 0]));
    expect(commands.map(({ start }) => start?.workflowId).sort()).toEqual(
      [waiting, id].map(sendMessageWorkflowId).sort(),
    );
    for (const message of [waiting, id]) expect(await dispatchOnce(setup, message)).toBe('settled');
    expect(setup.transport.transmissions).toHaveLength(2);
  });

  test('webhook_deliveries holds new and due deliveries without an attempt or a run; on releases them', async () => {
    const arranged = await arrangeDeliveries(worker(), 1);
    const { organization, endpointId, outbox, commands } = arranged;
    const [due = ''] = arranged.deliveryIds;
    let attempts = 0;
    const deliveries = arranged.worker(async () => {
      attempts += 1;
      return httpAnswer(200);
    });
    await whileOff('webhook_deliveries', async () => {
      await worker().systemTransaction((transaction) =>
        createWebhookEvents({ outbox }).record(transaction, {
          organizationId: organization.organizationId,
          environmentId: organization.productionEnvironmentId,
          inboxId: null,
          type: 'message.received',
          data: {} as never,
        }),
      );
      expect(commands).toEqual([]);
      expect((await deliveries.attempt(due, true)).kind).toBe('settled');
      expect(await releaseSwitchedOffDeliveries(worker(), outbox)).toBe(0);
    });
    expect(attempts).toBe(0);
    expect(await arranged.deliveries()).toMatchObject([
      { id: due, status: 'held', heldFor: 'switched_off', attempts: 0 },
      { endpointId, status: 'held', heldFor: 'switched_off' },
    ]);
    expect(lastStart(app)).toMatchObject({ input: { toggle: 'webhook_deliveries' } });
    expect(await releaseSwitchedOffDeliveries(worker(), outbox)).toBe(2);
    expect(commands).toHaveLength(2);
    expect((await deliveries.attempt(due, false)).kind).toBe('settled');
    expect((await arranged.deliveries())[0]).toMatchObject({ status: 'delivered', heldFor: null });
    expect(attempts).toBe(1);
  });

  test('webhook_deliveries stops the probes of a failing endpoint', async () => {
    const arranged = await arrangeDeliveries(worker(), 1, {
      failing_since: new Date(Date.now() - 3_600_000),
      holding_since: new Date(Date.now() - 3_600_000),
      consecutive_failures: 20,
      probe_generation: 1,
    });
    await query(
      worker(),
      sql`update webhook_deliveries set status = 'held', held_for = 'endpoint_failing'
      where endpoint_id = ${arranged.endpointId} returning id`,
    );
    let attempts = 0;
    const probe = arranged.probe(async () => {
      attempts += 1;
      return httpAnswer(503);
    });
    const run = { endpointId: arranged.endpointId, generation: 1, now: true };
    await whileOff('webhook_deliveries', async () => {
      expect(await probe.attempt(run)).toMatchObject({
        kind: 'repeat',
        detail: expect.stringContaining('switched off'),
      });
      expect(attempts).toBe(0);
    });
    await probe.attempt(run);
    expect(attempts).toBe(1);
  });

  test('inbound_mail answers senders with 451 and providers with 503', async () => {
    const receipts = createTestReceiptService({ database: worker(), outbox: recordingOutbox().outbox });
    const inbox = await createInbox(worker(), await createOrganization(worker()));
    const intake = createMailIntake({ receipts, storage: {} as never, maxSizeBytes: 1_000 });
    const { listener } = await listen({ receipts: { resolve: receipts.resolve } });
    const client = await greeted(listener.port);
    await client.command('MAIL FROM:<ada@people.example>');
    await whileOff('inbound_mail', async () => {
      expect(await client.command(`RCPT TO:<${inbox.email}>`)).toMatch(/^451 4\.3\.2 /);
      await expect(intake.resolve([inbox.email], '')).rejects.toMatchObject({ code: 'unavailable' });
    });
    expect(await client.command(`RCPT TO:<${inbox.email}>`)).toMatch(/^250 /);
    expect((await intake.resolve([inbox.email], '')).recipients).toHaveLength(1);
  });
});
