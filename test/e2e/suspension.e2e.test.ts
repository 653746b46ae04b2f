import { afterAll, beforeAll, expect, jest, test } from '@jest/globals';
import { Client } from '@temporalio/client';
import nodemailer, { type SendMailOptions, type TransportOptions } from 'nodemailer';
import type { Database } from '../../platform/database/database.ts';
import { settleSuspensionWorkflowId } from '../../workflows/suspensions/settle-held-work.contract.ts';
import { apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { sharedService } from '../support/service.ts';
import { createStaff } from '../support/staff.ts';
import { connectToTemporal } from '../support/temporal-connection.ts';
import { connect } from '../support/test-app.ts';
import { WebhookReceiver } from '../support/webhook-receiver.ts';

/** With real listeners, workers and Temporal: a suspension must hold at every way in and out at once. */
jest.setTimeout(180_000);
const TIMEOUT_MS = 60_000;

const service = sharedService();
/** An organization of its own, since all of it is suspended. */
let organization: TestOrganization;
let call: Call;
let admin: Call;
let database: Database;
let temporal: Client;
const receiver = new WebhookReceiver();

beforeAll(async () => {
  database = await connect(service.database_url);
  organization = await createOrganization(database);
  call = apiClient(service, organization.token);
  const { token } = await createStaff({ worker: database });
  admin = apiClient(service, token);
  temporal = new Client({ connection: await connectToTemporal(service.temporal_address) });
});
afterAll(async () => {
  await receiver.stop();
  await temporal?.connection.close();
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
  const response = await fetch(`${service.base_url}/api/v1/events/stream`, {
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
    ...service.submission_smtp,
    requireTLS: true,
    auth: { user: inbox.email, pass: password },
  };
  await expect(submit(account, { from: inbox.email, to: 'ada@people.example' })).rejects.toThrow(
    /550 5\.7\.1 .*suspended/,
  );
  await submit(
    { ...service.inbound_smtp, ignoreTLS: true },
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
  const run = temporal.workflow.getHandle(settleSuspensionWorkflowId(id, 'reinstated'));
  // The reconciler releases the same every minute, and may come first. `held-work.api.test` has the exact counts.
  expect(await run.result()).toMatch(/; released: 0 message\(s\), [01] draft\(s\), [01] webhook deliveries$/);
  expect((await call('POST', `/inboxes/${inbox.id}/messages`, mail)).status).toBe(201);
});
