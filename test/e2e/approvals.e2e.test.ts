import { createHash, randomBytes } from 'node:crypto';
import { beforeAll, expect, jest, test } from '@jest/globals';
import { sql } from 'kysely';
import nodemailer from 'nodemailer';
import { type Answer, apiClient, type Call } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';
import { createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { sharedService } from '../support/service.ts';
import { createTestSession } from '../support/sessions.ts';
import { connect } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

jest.setTimeout(120_000);
const TIMEOUT_MS = 60_000;
const service = sharedService();
const database = useResource(
  () => connect(service.database_url),
  (connected) => connected.close(),
);

let organizationId: string;
let agent: Call;
let approver: Call;
let inbox: Answer;
let recipient: Answer;
beforeAll(async () => {
  const organization = await createOrganization(database);
  organizationId = organization.organizationId;
  agent = apiClient(service, organization.token);
  approver = apiClient(service, (await createTestSession(database, organization.ownerId)).token);
  inbox = (await agent('POST', '/inboxes', {})).body;
  recipient = (await apiClient(service, service.api_key)('POST', '/inboxes', {})).body;
  expect((await approver('PATCH', '/org/policies', { require_send_approval: 'all' })).status).toBe(200);
});

async function approveOnlyWaiting(): Promise<Answer> {
  const waiting = (await approver('GET', '/drafts?send_status=pending_approval')).body.data as Answer[];
  expect(waiting).toHaveLength(1);
  const [draft] = waiting;
  const approved = await approver('POST', `/drafts/${draft?.id}/approve`, { version: draft?.version });
  expect(approved.status).toBe(201);
  return approved.body;
}

const untilDelivered = (id: string) =>
  eventually(async () => {
    const { body } = await agent('GET', `/messages/${id}`);
    expect(body.status).toBe('delivered');
    return body;
  }, TIMEOUT_MS);

test('what a key sends is delivered once a person has approved it', async () => {
  const sent = await agent('POST', `/inboxes/${inbox.id}/messages`, {
    to: [recipient.email],
    subject: 'Offer',
    text_body: 'Hello',
  });
  expect([sent.status, sent.body.send_status]).toEqual([202, 'pending_approval']);
  await eventually(async () => {
    const emails = await query<{ status: string }>(
      database,
      sql`select status from notifications where org_id = ${organizationId} and template = 'approvals-pending'`,
    );
    expect(emails).toEqual([{ status: 'sent' }]);
  }, TIMEOUT_MS);
  const { id } = await approveOnlyWaiting();
  await untilDelivered(String(id));
});

test('a submission is sent byte for byte once a person has approved it', async () => {
  const { body } = await agent('POST', `/inboxes/${inbox.id}/credentials/rotate`);
  const transport = nodemailer.createTransport({
    ...service.submission_smtp,
    requireTLS: true,
    tls: { rejectUnauthorized: false },
    auth: { user: String(inbox.email), pass: String(body.password) },
  });
  const raw = Buffer.from(
    [
      `From: ${inbox.email}`,
      `To: ${recipient.email}`,
      'Subject: Submitted',
      `Message-ID: <${randomBytes(8).toString('hex')}@program>`,
      `Date: ${new Date().toUTCString().replace('GMT', '+0000')}`,
      'MIME-Version: 1.0',
      'X-Odd:   spaced',
      'Content-Type: text/plain; charset=utf-8',
      'Content-Transfer-Encoding: base64',
      '',
      Buffer.from(randomBytes(3_000).toString('hex'))
        .toString('base64')
        .replace(/.{1,70}/g, '$&\r\n'),
    ].join('\r\n'),
  );
  const envelope = { from: String(inbox.email), to: [String(recipient.email), 'blind@people.example'] };
  const submit = async () => (await transport.sendMail({ envelope, raw })).response;
  const first = await submit();
  expect(first).toMatch(/^250 .*queued as drf_/);
  // A client that missed the reply submits it again.
  expect(await submit()).toBe(first);
  transport.close();
  const [draft] = (await approver('GET', '/drafts?send_status=pending_approval')).body.data as Answer[];
  expect(draft).toMatchObject({
    subject: 'Submitted',
    bcc_addresses: ['blind@people.example'],
    approval: { requested_by: { kind: 'system', id: inbox.id } },
  });
  const patched = await agent('PATCH', `/drafts/${draft?.id}`, { subject: 'Other' });
  expect([patched.status, patched.body.code]).toEqual([409, 'conflict']);
  const { id } = await approveOnlyWaiting();
  const message = await untilDelivered(String(id));
  expect(message.recipients.map(({ email }: { email: string }) => email).sort()).toEqual(envelope.to.sort());
  const link = String((await agent('GET', `/messages/${id}/raw`)).body.download_url);
  const stored = Buffer.from(await (await fetch(link)).arrayBuffer()).toString('latin1');
  const unsigned = stored.replace(/^DKIM-Signature:.*\r\n(?:[ \t].*\r\n)*/i, '');
  expect(sha256(unsigned)).toBe(sha256(raw.toString('latin1')));
});

const sha256 = (text: string) => createHash('sha256').update(text, 'latin1').digest('hex');
