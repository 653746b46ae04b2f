import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { Client } from '@temporalio/client';
import { ReceiptEntity, toMessageId } from '../../domain/inbound/receipt.entity.ts';
import { buildReceiveStart } from '../../domain/inbound/receipt.service.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import { createWorkflowGateway } from '../../platform/outbox/workflow-gateway.ts';
import { RECONCILE_SCHEDULE_ID } from '../../workflows/maintenance/reconcile.contract.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { sharedService } from '../support/service.ts';
import { createStaff } from '../support/staff.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';
import { connect } from '../support/test-app.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

/** With a real Temporal server: its index, histories, signals and resets are what staff work with. */
jest.setTimeout(180_000);
const TIMEOUT_MS = 60_000;
/** A trigger has no effect while the reconciler runs; then its next run, within a minute, does the work. */
const RECONCILED_MS = 90_000;

const service = sharedService();
/** An organization of its own, since the tests act on all runs of one. */
let organization: TestOrganization;
let call: Call;
let admin: Call;
let database: Database;
let temporal: Client;

beforeAll(async () => {
  database = await connect(service.database_url);
  organization = await createOrganization(database);
  call = apiClient(service, organization.token);
  const { token } = await createStaff({ worker: database });
  admin = apiClient(service, token);
  temporal = new Client({ connection: await connectToTemporal(service.temporal_address) });
});
afterAll(async () => {
  await temporal?.connection.close();
  await database?.close();
});

interface Run {
  workflow_id: string;
  status: string;
  stage: string;
  attempt: number;
  last_failure: string;
  failure: string | null;
  current_details: string;
  temporal_ui_url: string;
  history: { type: string; name: string | null; detail: string | null }[];
}

const note = 'Ticket 7';
const pathOf = (workflowId: string) => `/admin/workflows/${encodeURIComponent(workflowId)}`;
const runOf = async (workflowId: string) => (await admin('GET', pathOf(workflowId))).body as unknown as Run;
async function act(workflowId: string, action: string, body: object = {}): Promise<void> {
  const { status } = await admin('POST', `${pathOf(workflowId)}/${action}`, { note, ...body });
  expect(status).toBe(202);
}
/** Waits until the list has the run. */
const untilListed = (query: string, workflowId: string): Promise<Run> =>
  eventually(async () => {
    const { body } = await admin('GET', `/admin/workflows?org_id=${organization.organizationId}&${query}`);
    const found = (body.data as unknown as Run[]).find((run) => run.workflow_id === workflowId);
    expect(found).toBeDefined();
    return found as Run;
  }, TIMEOUT_MS);
const untilEnded = (workflowId: string, result: string): Promise<void> =>
  eventually(async () => {
    const { status, history } = await runOf(workflowId);
    expect([status, history[0]?.detail]).toEqual(['completed', result]);
  }, TIMEOUT_MS);

const createInbox = async (): Promise<string> => (await call('POST', '/inboxes', {})).body.id;

/** A message of which the relay accepts one recipient and defers the other. */
async function sendHalf(inboxId: string) {
  const sent = await call('POST', `/inboxes/${inboxId}/messages`, {
    to: [{ email: 'ada@people.example' }, { email: 'defer@people.example' }],
    text_body: 'Later.',
  });
  expect(sent.status).toBe(201);
  return { id: sent.body.id, requestId: sent.headers.get('x-request-id') ?? '' };
}

const recipientsOf = async (messageId: string) =>
  (await call('GET', `/messages/${messageId}`)).body.recipients.map(({ status }) => status);

/** A received message whose raw object does not exist. */
async function loseReceivedMail(inboxId: string): Promise<string> {
  const id = newId('receipt');
  const receipt = await database.systemTransaction(async ({ db }) => {
    const created = await db
      .insertInto('inbound_receipts')
      .values({
        id,
        org_id: organization.organizationId,
        env_id: organization.productionEnvironmentId,
        inbox_id: inboxId,
        kind: 'mail',
        message_id: toMessageId(id),
        raw_key: `raw/${id}`,
        size_bytes: 10,
        sha256: Buffer.alloc(32),
        mail_from: 'ada@people.example',
        rcpt_to: 'agent@people.example',
        client_ip: '192.0.2.1',
        received_at: new Date(Date.now() - 3_600_000),
      })
      .returning(columnsOf(ReceiptEntity))
      .executeTakeFirstOrThrow();
    return created;
  });
  await createWorkflowGateway(temporal).dispatch({ start: buildReceiveStart(receipt) });
  return id;
}
const receiptOf = (id: string) =>
  database.db
    .selectFrom('inbound_receipts')
    .select(columnsOf(ReceiptEntity))
    .where('id', '=', id)
    .executeTakeFirstOrThrow();

describe('staff settle stuck work', () => {
  test('a deferred message: found, retried, and canceled for the recipient that is left', async () => {
    const { id, requestId } = await sendHalf(await createInbox());
    const workflowId = `send/${id}`;
    const listed = await untilListed('type=sendMessage&stage=deferred', workflowId);
    expect(listed.temporal_ui_url).toContain(encodeURIComponent(workflowId));
    const started = [];
    for await (const { workflowId: found } of temporal.workflow.list({ query: `RequestId = '${requestId}'` }))
      started.push(found);
    expect(started).toContain(workflowId);
    const { current_details: details } = await runOf(workflowId);
    expect(details).toMatch(/^Deferred by the relay after \d+ attempts\. Next attempt at \d{4}-[^ ]+Z\./);

    const attempts = async () =>
      (await runOf(workflowId)).history.filter(({ name }) => name === 'transmitMessage').length;
    const before = await attempts();
    await act(workflowId, 'retry');
    await eventually(async () => expect(await attempts()).toBeGreaterThan(before), TIMEOUT_MS);
    await act(workflowId, 'cancel');
    await eventually(async () => expect((await recipientsOf(id))[1]).toBe('rejected'), TIMEOUT_MS);
    await eventually(async () => expect((await runOf(workflowId)).status).toBe('completed'), TIMEOUT_MS);
  });

  test('a received message that is lost: discarded with the reason, also after its run was terminated', async () => {
    const inboxId = await createInbox();
    const [byApi, bySignal] = [await loseReceivedMail(inboxId), await loseReceivedMail(inboxId)];
    const listed = await untilListed('type=receiveMessage&failing=true', `inbound/${byApi}`);
    expect(listed.last_failure).toMatch(/^StorageError: .*404/);
    await act(`inbound/${byApi}`, 'cancel');
    await untilEnded(`inbound/${byApi}`, `discarded: ${note}`);
    expect(await receiptOf(byApi)).toMatchObject({ status: 'discarded', discardReason: note });

    const run = temporal.workflow.getHandle(`inbound/${bySignal}`);
    await run.terminate('by mistake');
    const terminated = await untilListed('type=receiveMessage&status=terminated', run.workflowId);
    expect(terminated.failure).toMatch(/by mistake/);
    // A reconciler that ran meanwhile checks the row again only after ten minutes.
    await database.db
      .updateTable('inbound_receipts')
      .set({ reconciled_at: null })
      .where('id', '=', bySignal)
      .execute();
    await temporal.schedule.getHandle(RECONCILE_SCHEDULE_ID).trigger();
    await eventually(async () => expect((await runOf(run.workflowId)).status).toBe('running'), RECONCILED_MS);
    await run.signal('discard', 'The bucket was restored without it');
    await untilEnded(run.workflowId, 'discarded: The bucket was restored without it');
    expect(await receiptOf(bySignal)).toMatchObject({ status: 'discarded' });
  });

  test('a failing webhook: delivered by a retry once the receiver is repaired', async () => {
    const inboxId = await createInbox();
    const receiver = new WebhookReceiver();
    const url = await receiver.start();
    const answer = (code: number) =>
      receiver.answerWith((_request, response) => response.writeHead(code).end());
    answer(500);
    const endpoint = await call('POST', '/webhooks/endpoints', {
      url,
      events: ['message.sent'],
      inbox_ids: [inboxId],
    });
    await sendHalf(inboxId);
    const delivery = await eventually(async () => {
      const { body } = await call('GET', `/webhooks/endpoints/${endpoint.body.id}/deliveries`);
      expect(body.data).toHaveLength(1);
      return body.data[0]?.id as string;
    }, TIMEOUT_MS);
    const listed = await untilListed('type=deliverWebhook&failing=true', `webhook/${delivery}`);
    expect(listed.last_failure).toMatch(/500/);
    answer(204);
    await act(`webhook/${delivery}`, 'retry');
    await untilEnded(`webhook/${delivery}`, 'delivered');
    await receiver.stop();
  });

  test('a domain that does not verify: checked now, and given up', async () => {
    const name = `d${Date.now()}.example`;
    const { body } = await call('POST', '/domains', { domain_name: name });
    const workflowId = `domain/${body.id}/1`;
    await untilListed('type=verifyDomain&failing=true', workflowId);
    await act(workflowId, 'retry');
    await act(workflowId, 'cancel');
    await eventually(async () => expect((await runOf(workflowId)).status).toBe('canceled'), TIMEOUT_MS);
    expect((await call('GET', `/domains/${body.id}`)).body.verification_status).toBe('failed');
  });

  test('a scheduled draft: kept, without its plan', async () => {
    const inboxId = await createInbox();
    const draft = await call('POST', `/inboxes/${inboxId}/drafts`, {
      to: [{ email: 'ada@people.example' }],
      text_body: 'Tomorrow.',
      send_at: new Date(Date.now() + 86_400_000).toISOString(),
    });
    const workflowId = `scheduled/${draft.body.id}/1`;
    await untilListed('type=sendScheduledDraft&stage=scheduled', workflowId);
    await act(workflowId, 'cancel');
    await untilEnded(workflowId, 'unscheduled');
    expect((await call('GET', `/drafts/${draft.body.id}`)).body).toMatchObject({ send_at: null });
  });

  test('a purge that waits for a message: completed by a retry of its activity after all sends of the inbox were canceled', async () => {
    const inboxId = await createInbox();
    const { id } = await sendHalf(inboxId);
    await untilListed('type=sendMessage&stage=deferred', `send/${id}`);
    expect((await call('DELETE', `/inboxes/${inboxId}?purge=true`)).status).toBeLessThan(300);
    const workflowId = `purge/${inboxId}`;
    const { attempt } = await untilListed(`type=purgeInbox&failing=true&about=${inboxId}`, workflowId);
    expect(attempt).toBeGreaterThan(0);
    const { namespace } = temporal.workflow.options;
    await temporal.workflowService.pauseActivity({
      namespace,
      execution: { workflowId },
      type: 'purgeInboxMail',
    });

    const job = await admin('POST', '/admin/workflows/bulk', {
      action: 'cancel',
      note,
      query: { org_id: organization.organizationId, type: 'sendMessage', stage: 'deferred' },
    });
    expect(job.status).toBe(202);
    await eventually(async () => {
      const { body } = await admin('GET', `/admin/workflows/jobs/${job.body.id}`);
      expect(body).toMatchObject({ status: 'completed', refused: 0 });
    }, TIMEOUT_MS);
    await eventually(async () => expect((await runOf(`send/${id}`)).status).toBe('completed'), TIMEOUT_MS);
    // Its activity is paused.
    await act(workflowId, 'retry');
    await eventually(async () => expect((await runOf(workflowId)).status).toBe('completed'), TIMEOUT_MS);
  });
});
