import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import nodemailer, { type SendMailOptions, type TransportOptions } from 'nodemailer';
import type { Database } from '../../platform/database/database.ts';
import { RECONCILE_SCHEDULE_ID } from '../../workflows/maintenance/reconcile.contract.ts';
import { settleSuspensionWorkflowId } from '../../workflows/suspensions/settle-held-work.contract.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { useIsolatedOrganization } from '../support/isolated-organization.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { createStaff } from '../support/staff.ts';
import { connect } from '../support/test-app.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

/** With real listeners, workers and Temporal: a suspension must hold at every way in and out at once. */
jest.setTimeout(180_000);
const TIMEOUT_MS = 60_000;

// A service of its own: the reconciler releases held work, too, and must not do so before the run under test.
const own = useIsolatedOrganization();
let organization: TestOrganization;
let call: Call;
let admin: Call;
let database: Database;
const receiver = new WebhookReceiver();

beforeAll(async () => {
  await own.temporal.schedule
    .getHandle(RECONCILE_SCHEDULE_ID)
    .pause('The run of the suspension is tested alone');
  database = await connect(own.service.config.DATABASE_URL);
  organization = await createOrganization(database);
  call = apiClient({ base_url: own.service.baseUrl }, organization.token);
  const { token } = await createStaff({ worker: database });
  admin = apiClient({ base_url: own.service.baseUrl }, token);
});
afterAll(async () => {
  await receiver.stop();
  await database?.close();
});

async function submit(options: object, mail: SendMailOptions): Promise<unknown> {
  const transport = nodemailer.createTransport({
    tls: { rejectUnauthorized: false },
    ...options,
  } as TransportOptions);
  try {
    return await transport.sendMail({ text: 'Hello', ...mail });
  } finally {
    transport.close();
  }
}

/** Reads an event stream to its end. */
async function readStream(): Promise<string> {
  const response = await fetch(`${own.service.baseUrl}/api/v1/events/stream`, {
    headers: { authorization: `Bearer ${organization.token}` },
  });
  expect(response.status).toBe(200);
  return response.text();
}

test('a suspension holds what goes in and out, and reinstatement lets it leave', async () => {
  const inbox = (await call('POST', '/inboxes', {})).body;
  const { password } = (await call('POST', `/inboxes/${inbox.id}/credentials/rotate`)).body;
  const url = await receiver.start();
  const endpoint = (await call('POST', '/webhooks/endpoints', { url, events: ['message.received'] })).body;
  const draft = await call('POST', `/inboxes/${inbox.id}/drafts`, {
    to: [{ email: 'ada@people.example' }],
    subject: 'Planned',
    text_body: 'x',
    send_at: new Date(Date.now() + 10_000).toISOString(),
  });
  expect(draft.status).toBe(201);
  const stream = readStream();

  const path = `/admin/orgs/${organization.organizationId}`;
  const request = { reason: 'policy', note: 'Ticket 1' };
  const suspended = await admin('POST', `${path}/suspend`, request);
  expect(suspended.status).toBe(200);
  const mail = { to: [{ email: 'ada@people.example' }], text_body: 'x' };
  const refused = await call('POST', `/inboxes/${inbox.id}/messages`, mail);
  expect([refused.status, refused.body.code]).toEqual([403, 'organization_suspended']);
  const account = {
    host: '127.0.0.1',
    port: own.service.config.SUBMISSION_SMTP_PORT,
    requireTLS: true,
    auth: { user: inbox.email, pass: password },
  };
  await expect(submit(account, { from: inbox.email, to: 'ada@people.example' })).rejects.toThrow(
    /550 5\.7\.1 .*suspended/,
  );
  await submit(
    { host: '127.0.0.1', port: own.service.inboundPort, ignoreTLS: true },
    {
      from: 'grace@people.example',
      to: inbox.email,
      subject: 'Still stored',
    },
  );
  await eventually(async () => {
    const { data } = (await call('GET', `/inboxes/${inbox.id}/messages?direction=inbound`)).body;
    expect(data.map(({ subject }) => subject)).toEqual(['Still stored']);
  }, TIMEOUT_MS);
  await eventually(async () => {
    const { data } = (await call('GET', `/webhooks/endpoints/${endpoint.id}/deliveries`)).body;
    expect(data).toMatchObject([{ status: 'held', held_for: 'suspension' }]);
  }, TIMEOUT_MS);
  await eventually(async () => {
    const { body } = await call('GET', `/drafts/${draft.body.id}`);
    expect(body).toMatchObject({ send_status: 'scheduled', send_error: expect.stringContaining('Held') });
  }, TIMEOUT_MS);
  expect(receiver.received).toEqual([]);
  expect(await stream).toContain('organization_suspended');

  expect((await admin('POST', `${path}/reinstate`, request)).status).toBe(200);
  await eventually(async () => expect(receiver.received).toHaveLength(1), TIMEOUT_MS);
  await eventually(async () => {
    const { data } = (await call('GET', `/inboxes/${inbox.id}/messages?direction=outbound`)).body;
    expect(data).toMatchObject([{ subject: 'Planned', status: expect.stringMatching(/sent|delivered/) }]);
  }, TIMEOUT_MS);
  const [{ id }] = suspended.body.suspensions as unknown as [{ id: string }];
  const run = own.temporal.workflow.getHandle(settleSuspensionWorkflowId(id, 'reinstated'));
  expect(await run.result()).toContain('1 draft(s), 1 webhook deliveries');
  expect((await call('POST', `/inboxes/${inbox.id}/messages`, mail)).status).toBe(201);
});
