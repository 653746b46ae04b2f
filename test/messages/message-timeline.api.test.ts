import { expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { accepted, ambiguous, deferred, refused } from '../support/mail-services.ts';
import { createInbox, createKey, createOrganization } from '../support/organizations.ts';
import { arrangeSending, dispatchOnce } from '../support/outbound-mail.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

test('shows when and from where a received message arrived, and when it was parsed', async () => {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const world = await arrangeInbox(app.worker, {}, inbox);
  const receivedAt = new Date(Date.now() - 60_000);
  const { message } = await world.receive(mail({ Subject: 'Hello' }), {
    receivedAt,
    helo: 'mx.people.example',
  });

  const response = await app.call(`/messages/${message?.id}/timeline`, { token: organization.token });

  expect(response.json()).toMatchObject({
    object: 'message_timeline',
    message_id: message?.id,
    steps: [
      {
        type: 'received',
        at: receivedAt.toISOString(),
        detail: 'Envelope sender <ada@people.example>, from mx.people.example [192.0.2.1] without TLS.',
      },
      { type: 'parsed' },
    ],
    truncated: false,
  });
});

interface Timeline {
  steps: {
    type: string;
    at: string;
    recipient: string | null;
    attempt: { number: number; state: string } | null;
  }[];
}
const arrange = async () => {
  const world = await arrangeSending(app.worker);
  const { token } = await createKey(app.worker, { organizationId: world.inbox.organizationId });
  const read = async (messageId: string) => {
    const response = await app.call(`/messages/${messageId}/timeline`, { token });
    expect(response.statusCode).toBe(200);
    return response.json<Timeline>();
  };
  return { ...world, token, read };
};

test('shows each attempt with the response of the relay, and what to do about each failed recipient', async () => {
  const world = await arrange();
  const replies = [deferred, refused];
  world.transport.answerWith(async ({ recipient }) =>
    recipient.startsWith('bob') ? (replies.shift() ?? accepted) : accepted,
  );
  const messageId = await world.send('ada@people.example', 'bob@people.example');
  expect(await dispatchOnce(world, messageId)).toBe('deferred');
  await dispatchOnce(world, messageId);

  const { steps } = await world.read(messageId);

  const times = steps.map(({ at }) => at);
  expect(times).toEqual([...times].sort());
  expect(steps.slice(0, 2)).toMatchObject([{ type: 'accepted' }, { type: 'queued' }]);
  expect(
    steps.filter(({ type, recipient }) => type === 'attempt' && recipient?.startsWith('bob')),
  ).toMatchObject([
    { attempt: { number: 1, state: 'deferred' }, detail: deferred.response },
    { attempt: { number: 2, state: 'refused' }, detail: refused.response },
  ]);
  expect(steps.filter(({ type }) => type === 'sent')).toMatchObject([{ recipient: 'ada@people.example' }]);
  expect(steps.at(-1)).toMatchObject({
    type: 'bounced',
    recipient: 'bob@people.example',
    detail: expect.stringContaining('5'),
    next: expect.stringMatching(/address|server/),
  });
});

test('shows a cancellation, a message that needs attention, and a delivery before a late bounce', async () => {
  const world = await arrange();
  const canceled = await world.send('ada@people.example');
  await app.call(`/messages/${canceled}/cancel`, { method: 'POST', token: world.token });
  expect((await world.read(canceled)).steps.map(({ type }) => type)).toEqual([
    'accepted',
    'queued',
    'canceled',
  ]);

  world.transport.answerWith(async () => ambiguous);
  const unclear = await world.send('ada@people.example');
  await dispatchOnce(world, unclear);
  expect((await world.read(unclear)).steps.at(-1)).toMatchObject({
    type: 'needs_attention',
    detail: expect.any(String),
  });

  world.transport.answerWith(async () => accepted);
  const bounced = await world.send('ada@people.example');
  await dispatchOnce(world, bounced);
  await query(app.worker, sql`update messages set delivered_at = now() where id = ${bounced}`);
  await query(
    app.worker,
    sql`update message_recipients set status = 'bounced', updated_at = now() + interval '1 hour' where message_id = ${bounced}`,
  );
  const { steps } = await world.read(bounced);
  expect(steps.map(({ type }) => type)).toEqual([
    'accepted',
    'queued',
    'attempt',
    'sent',
    'delivered',
    'bounced',
  ]);
  expect(steps.at(-2)).toMatchObject({ recipient: 'ada@people.example' });
});

test('is hidden from another organization', async () => {
  const world = await arrange();
  const messageId = await world.send('ada@people.example');
  const stranger = await createOrganization(app.worker);
  expectProblem(await app.call(`/messages/${messageId}/timeline`, { token: stranger.token }), 'not_found');
});
