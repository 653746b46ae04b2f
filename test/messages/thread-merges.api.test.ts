import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { MAX_MESSAGES_PER_MERGE } from '../../domain/messages/merge-threads.ts';
import { hashMessageId } from '../../domain/messages/message-ids.ts';
import { ThreadEntity } from '../../domain/messages/thread.entity.ts';
import { createThreadMoveService, overdueThreadMoves } from '../../domain/messages/thread-moves.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { arrangeConversations } from '../support/conversations.ts';
import { purgeServiceOf } from '../support/inbox-purge.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp();
let organization: TestOrganization;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
});

type Json = Record<string, unknown> & { id: string };
const call = (path: string, options: Call = {}) => app.call(path, { token: organization.token, ...options });
const get = async <T = Json>(path: string) => (await call(path)).json<T>();
const listIds = async (path: string) => (await get<{ data: Json[] }>(path)).data.map(({ id }) => id).sort();

const arrange = async () => arrangeConversations(app.worker, await createInbox(app.worker, organization));
type Conversations = Awaited<ReturnType<typeof arrange>>;

const threadRow = (id: string) =>
  app.worker.db.selectFrom('threads').select(columnsOf(ThreadEntity)).where('id', '=', id).executeTakeFirst();
const countIds = async (inboxId: string) => {
  const [row] = await query<{ count: number }>(
    app.worker,
    sql`select count(*)::int as count from thread_message_ids where inbox_id = ${inboxId}`,
  );
  return row?.count;
};

/** Two fragments of a conversation, whose connecting message arrives last. */
async function arrangeMerge(conversations: Conversations) {
  const { arrive, threadOf } = conversations;
  const older = await arrive({ id: 'root@x', subject: 'Plan', from: 'ada@x.example' });
  const younger = await arrive({
    id: 'answer@x',
    inReplyTo: '<middle@x>',
    subject: 'Re: Plan',
    from: 'bob@x.example',
  });
  const ids = { older: (await threadOf(older)) ?? '', younger: (await threadOf(younger)) ?? '' };
  expect(ids.older).not.toBe(ids.younger);
  const merge = () =>
    arrive({ id: 'middle@x', inReplyTo: '<root@x>', subject: 'Re: Plan', from: 'mei@x.example' });
  return { older, younger, ids, merge };
}

describe('an arrival that shows two threads to be one', () => {
  test('merges them into the older: messages, search and summary move, and the later pause of sending stays', async () => {
    const conversations = await arrange();
    const { older, younger, ids, merge } = await arrangeMerge(conversations);
    const [early, late] = [new Date(Date.now() + 60_000), new Date(Date.now() + 600_000)];
    await app.worker.systemTransaction(async ({ db }) => {
      await db.updateTable('threads').set({ send_paused_until: early }).where('id', '=', ids.older).execute();
      await db
        .updateTable('threads')
        .set({ send_paused_until: late })
        .where('id', '=', ids.younger)
        .execute();
    });
    const middle = await merge();
    const all = [older, younger, middle].sort();
    expect(await get(`/threads/${ids.older}`)).toMatchObject({
      id: ids.older,
      message_count: 3,
      last_message_id: middle,
      participants: ['ada@x.example', 'bob@x.example', 'mei@x.example'],
    });
    expect((await threadRow(ids.older))?.sendPausedUntil).toEqual(late);
    expect(await listIds(`/inboxes/${conversations.inbox.id}/threads`)).toEqual([ids.older]);
    for (const id of [ids.older, ids.younger]) {
      expect(await get(`/threads/${id}`)).toMatchObject({ id: ids.older });
      expect(await listIds(`/messages?thread_id=${id}`)).toEqual(all);
      expect(await listIds(`/messages?thread_id=${id}&q=hello`)).toEqual(all);
    }
  });

  test('leaves an alias that drafts, replies, labels and deletion understand', async () => {
    const conversations = await arrange();
    const { younger, ids, merge } = await arrangeMerge(conversations);
    await merge();
    const draft = await call(`/inboxes/${conversations.inbox.id}/drafts`, {
      method: 'POST',
      body: {
        to: [{ email: 'ada@x.example' }],
        text_body: 'Hi',
        thread_id: ids.younger,
        in_reply_to: younger,
      },
    });
    const sent = await call(`/drafts/${draft.json<Json>().id}/send`, { method: 'POST' });
    expect(sent.json()).toMatchObject({ thread_id: ids.older });
    const reply = await call(`/messages/${younger}/reply`, { method: 'POST', body: { text_body: 'Yes' } });
    expect(reply.json()).toMatchObject({ thread_id: ids.older });
    await call(`/messages/${younger}/labels`, { method: 'POST', body: { labels: ['seen'] } });
    expect(await get(`/threads/${ids.younger}`)).toMatchObject({ labels: ['seen'], message_count: 5 });

    await query(app.worker, sql`update messages set status = 'sent' where thread_id = ${ids.older}`);
    expect((await call(`/threads/${ids.younger}`, { method: 'DELETE' })).statusCode).toBe(204);
    for (const id of [ids.older, ids.younger]) {
      expectProblem(await call(`/threads/${id}`), 'not_found');
      expect(await threadRow(id)).toBeUndefined();
    }
    expect(await countIds(conversations.inbox.id)).toBe(0);
  });

  test('keeps all aliases when the thread is merged again, and hides them from another organization', async () => {
    const conversations = await arrange();
    const { arrive, threadOf } = conversations;
    const leaf = await arrive({ id: 'd@x', inReplyTo: '<c@x>', subject: 'Re: Plan' });
    const first = await threadOf(leaf);
    const between = await arrive({ id: 'b@x', inReplyTo: '<a@x>', subject: 'Re: Plan' });
    const second = await threadOf(between);
    const other = await createOrganization(app.worker);
    await arrive({ id: 'c@x', inReplyTo: '<b@x>', subject: 'Re: Plan' });
    const older = await app.worker.systemTransaction(async ({ db }) => {
      // An older thread, to be found last.
      await query(
        { db },
        sql`insert into threads (id, org_id, env_id, inbox_id, subject, base_subject, last_message_at, created_at, updated_at)
         select 'thr_00' || substr(id, 7), org_id, env_id, inbox_id, 'Plan', 'plan', now(), '2020-01-01', now()
         from threads where id = ${first ?? ''}`,
      );
      const id = `thr_00${first?.slice(6)}`;
      await query(
        { db },
        sql`insert into thread_message_ids (inbox_id, id_hash, org_id, thread_id, source)
         select inbox_id, ${hashMessageId('z@x')}, org_id, id, 'named' from threads where id = ${id}`,
      );
      return id;
    });
    await arrive({ id: 'a@x', inReplyTo: '<z@x>', subject: 'Re: Plan' });
    for (const id of [first, second, older]) expect(await get(`/threads/${id}`)).toMatchObject({ id: older });
    expectProblem(await app.call(`/threads/${second}`, { token: other.token }), 'not_found');
    expect((await threadRow(second ?? ''))?.mergedIntoId).toBe(older);
  });

  test('moves 1,000 messages itself and the others by a workflow, which the reconciler restarts', async () => {
    const conversations = await arrange();
    const { ids, merge, younger } = await arrangeMerge(conversations);
    const extra = MAX_MESSAGES_PER_MERGE + 700;
    await query(
      app.worker,
      sql`insert into messages (id, org_id, env_id, inbox_id, thread_id, direction, status, from_email, "to", cc, bcc,
         reply_to, subject, headers, created_at, updated_at)
       select 'msg_' || lpad(n::text, 6, '0') || right(${younger}, 20), org_id, env_id, inbox_id, thread_id, 'inbound',
         'received', 'bob@x.example', '[]', '[]', '[]', '[]', 'Re: Plan', '{}', now(), now()
       from messages, generate_series(1, ${extra}) n where messages.id = ${younger}`,
    );
    await merge();
    expect(conversations.commands).toMatchObject([
      {
        start: {
          workflowType: 'moveThreadMessages',
          workflowId: `thread-move/${ids.younger}`,
          input: { threadId: ids.younger },
        },
      },
    ]);
    expect(await get(`/threads/${ids.younger}`)).toMatchObject({ id: ids.older, message_count: 1_002 });
    expect(await threadRow(ids.younger)).toMatchObject({ hasUnmovedMessages: true, mergedIntoId: ids.older });

    const source = overdueThreadMoves(app.worker);
    const dueIds = async () =>
      (await source.take(10_000))
        .map(({ start }) => start.workflowId)
        .filter((id) => id.endsWith(ids.younger));
    expect(await dueIds()).toEqual([]);
    await query(
      app.worker,
      sql`update threads set updated_at = now() - interval '3 minutes' where id = ${ids.younger}`,
    );
    expect(await dueIds()).toEqual([`thread-move/${ids.younger}`]);

    const progress: number[] = [];
    const moves = createThreadMoveService({ database: app.worker });
    expect(await moves.move(ids.younger, (moved) => progress.push(moved))).toBe(extra + 1 - 1_000);
    expect(progress).toEqual([500, extra + 1 - 1_000]);
    expect(await moves.move(ids.younger, () => {})).toBe(0);
    expect(await get(`/threads/${ids.younger}`)).toMatchObject({ id: ids.older, message_count: extra + 3 });
    expect(await threadRow(ids.younger)).toMatchObject({ hasUnmovedMessages: false, messageCount: 0 });
  });

  test('goes with its inbox when that is purged', async () => {
    const conversations = await arrange();
    const { merge } = await arrangeMerge(conversations);
    await merge();
    const inboxId = conversations.inbox.id;
    await query(app.worker, sql`update inboxes set purge_requested_at = now() where id = ${inboxId}`);
    await purgeServiceOf(app.worker).purge(inboxId, () => {});
    expect(await countIds(inboxId)).toBe(0);
    expect(await query(app.worker, sql`select id from threads where inbox_id = ${inboxId}`)).toEqual([]);
  });
});

describe('a stranger who knows ids of two conversations', () => {
  const plan = { id: 'plan@x', subject: 'Plan', from: 'ada@x.example' };
  const bill = { id: 'bill@y', subject: 'Bill', from: 'bob@y.example' };
  const stranger = { from: 'eve@evil.example', subject: 'Re: Plan' };

  test.each([
    ['In-Reply-To and References', { inReplyTo: '<plan@x>', references: ['<bill@y>'] }],
    ['References', { references: ['<bill@y>', '<plan@x>'] }],
    ['References with an id of its own between', { references: ['<bill@y>', '<own@evil>', '<plan@x>'] }],
  ])('cannot merge them by %s', async (_how, fields) => {
    const { arrive, threadOf } = await arrange();
    const [first, second] = [await arrive(plan), await arrive(bill)];
    const bridge = await arrive({ id: 'own@evil', ...stranger, ...fields });
    expect(await threadOf(bridge)).toBe(await threadOf(first));
    expect(await threadOf(second)).not.toBe(await threadOf(first));
    await arrive({ id: 'more@evil', ...stranger, inReplyTo: '<own@evil>', references: ['<bill@y>'] });
    expect(await threadOf(second)).not.toBe(await threadOf(first));
  });

  test('cannot join them in advance, by naming ids of messages that are still to come', async () => {
    const { arrive, threadOf } = await arrange();
    await arrive({ id: 'own@evil', ...stranger, references: ['<plan@x>', '<bill@y>'] });
    const [first, second] = [await arrive(plan), await arrive(bill)];
    expect(await threadOf(second)).not.toBe(await threadOf(first));
    const answer = await arrive({ id: 'answer@y', inReplyTo: '<bill@y>', subject: 'Re: Bill' });
    expect(await threadOf(answer)).toBe(await threadOf(second));
  });

  test('records at most 101 ids of a hostile message, and cannot join other inboxes', async () => {
    const [mine, theirs] = [await arrange(), await arrange()];
    const known = await theirs.arrive(plan);
    const references = Array.from({ length: 1_000 }, (_, n) => `<${n}@evil>`);
    const hostile = await mine.arrive({ id: 'own@evil', ...stranger, inReplyTo: '<plan@x>', references });
    expect(await countIds(mine.inbox.id)).toBe(101);
    expect(await mine.threadOf(hostile)).not.toBe(await theirs.threadOf(known));
    const [oldest, newest] = [
      await mine.arrive({ id: 'a@x', inReplyTo: '<0@evil>' }),
      await mine.arrive({ id: 'b@x', inReplyTo: '<999@evil>' }),
    ];
    for (const id of [oldest, newest]) expect(await mine.threadOf(id)).toBe(await mine.threadOf(hostile));
  });
});

describe.each([
  ['spam', { isSpam: true }],
  ['mail that fails DMARC', { dmarc: 'fail' }],
])('%s', (_what, untrusted) => {
  test('joins a thread, but merges nothing', async () => {
    const { arrive, threadOf } = await arrange();
    const one = await arrive({ id: 'one@x', inReplyTo: '<lost1@x>' });
    const two = await arrive({ id: 'two@x', inReplyTo: '<lost2@x>' });
    const forged = await arrive({ id: 'lost1@x', inReplyTo: '<two@x>' }, untrusted);
    expect(await threadOf(forged)).toBe(await threadOf(two));
    expect(await threadOf(one)).not.toBe(await threadOf(two));
    const answer = await arrive({ id: 'answer@x', inReplyTo: '<lost1@x>' });
    expect(await threadOf(answer)).toBe(await threadOf(one));
  });

  test('names ids without effect, and does not attract the message whose id it took', async () => {
    const { arrive, threadOf } = await arrange();
    const first = await arrive({ id: 'first@x', subject: 'Plan' });
    const forged = await arrive(
      { id: 'next@x', inReplyTo: '<first@x>', references: ['<other@x>', '<first@x>'] },
      untrusted,
    );
    expect(await threadOf(forged)).toBe(await threadOf(first));
    const next = await arrive({ id: 'next@x', subject: 'Bill' });
    expect(await threadOf(next)).not.toBe(await threadOf(first));
    const other = await arrive({ id: 'answer@x', inReplyTo: '<other@x>' });
    expect(await threadOf(other)).not.toBe(await threadOf(first));
    const reply = await arrive({ id: 'reply@x', inReplyTo: '<next@x>' });
    expect(await threadOf(reply)).toBe(await threadOf(next));
  });

  test('is answered in its own thread', async () => {
    const { arrive, threadOf } = await arrange();
    const first = await arrive({ id: 'first@x', subject: 'Plan' });
    const joined = await arrive({ id: 'joined@x', inReplyTo: '<first@x>' }, untrusted);
    const alone = await arrive({ id: 'alone@x', subject: 'Bill' }, untrusted);
    const answers = [
      await arrive({ id: 'answer1@x', inReplyTo: '<joined@x>' }),
      await arrive({ id: 'answer2@x', inReplyTo: '<alone@x>' }),
    ];
    expect(await Promise.all(answers.map(threadOf))).toEqual([await threadOf(first), await threadOf(alone)]);
    expect(await threadOf(joined)).toBe(await threadOf(first));
  });
});

describe('a message without ids', () => {
  const reply = { subject: 'Re: Plan', from: 'ada@x.example' };

  test('joins the thread of its subject and correspondents', async () => {
    const { arrive, threadOf, inbox } = await arrange();
    const first = await arrive({ id: 'plan@x', subject: 'Plan', from: 'ada@x.example' });
    const joined = await arrive({ ...reply, to: [inbox.email] });
    expect(await threadOf(joined)).toBe(await threadOf(first));
  });

  test.each([
    ['of another sender', { from: 'eve@x.example' }],
    ['with another recipient', { to: ['eve@x.example'] }],
    ['that names an unknown message', { inReplyTo: '<unknown@x>' }],
    ['with a subject that is no reply', { subject: 'Plan' }],
  ])('does not join by subject a message %s', async (_what, change) => {
    const { arrive, threadOf } = await arrange();
    const first = await arrive({ id: 'plan@x', subject: 'Plan', from: 'ada@x.example' });
    expect(await threadOf(await arrive({ ...reply, ...change }))).not.toBe(await threadOf(first));
  });

  test('never merges threads by subject', async () => {
    const { arrive, threadOf } = await arrange();
    const one = await arrive({ id: 'one@x', subject: 'Plan', from: 'ada@x.example' });
    const two = await arrive({ id: 'two@x', subject: 'Plan', from: 'ada@x.example' });
    await arrive(reply);
    expect(await threadOf(one)).not.toBe(await threadOf(two));
  });
});

test('an answer to a message of our own joins its thread, whichever of its ids it names', async () => {
  const conversations = await arrange();
  const { arrive, threadOf, inbox } = conversations;
  const asked = await arrive({
    id: 'ask@x',
    inReplyTo: '<lost@x>',
    subject: 'Re: Plan',
    from: 'ada@x.example',
  });
  const sent = (
    await call(`/messages/${asked}/reply`, { method: 'POST', body: { text_body: 'Yes' } })
  ).json<Json>();
  const answer = await arrive({ id: 'answer@x', inReplyTo: `<${sent.id}@${inbox.domain}>` });
  const sibling = await arrive({ id: 'sibling@x', inReplyTo: '<lost@x>' });
  for (const id of [sent.id, answer, sibling]) expect(await threadOf(id)).toBe(await threadOf(asked));
});

test('arrivals that merge threads in opposite directions concurrently do not deadlock', async () => {
  const { arrive, threadOf } = await arrange();
  const fragments = [];
  for (let n = 0; n < 6; n += 1) fragments.push(await arrive({ id: `${n}@x`, inReplyTo: `<lost${n}@x>` }));
  await Promise.all(
    [0, 1, 2, 3, 4].flatMap((n) => [
      arrive({ id: `up${n}@x`, references: [`<${n}@x>`, `<${n + 1}@x>`] }),
      arrive({ id: `down${n}@x`, references: [`<lost${n + 1}@x>`, `<lost${n}@x>`] }),
    ]),
  );
  expect(new Set(await Promise.all(fragments.map(threadOf))).size).toBe(1);
});
