import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  arrangeConversations,
  CLIENTS,
  type ConversationMessage,
  comparePairs,
  groupByLinks,
  readMailingList,
  writeIds,
} from '../support/conversations.ts';
import { arrangeInbox, mail } from '../support/inbound-mail.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

/** Lets messages arrive in the given order, up to `concurrency` at a time, in a new inbox. */
async function partitionAfter(order: readonly ConversationMessage[], concurrency = 1): Promise<string[][]> {
  const { arrive, readPartition } = await arrangeConversations(database);
  const waiting = [...order];
  const next = async (): Promise<void> => {
    for (let message = waiting.shift(); message; message = waiting.shift()) await arrive(message);
  };
  await Promise.all(Array.from({ length: concurrency }, next));
  return readPartition();
}

interface Post {
  conversation: number;
  parent: number;
  client: (typeof CLIENTS)[number];
  isMissing: boolean;
}

/** Reply trees in order of date. The inbox never gets the missing messages, which others still name. */
const conversations = fc
  .array(
    fc.record<Post>({
      conversation: fc.nat(3),
      parent: fc.nat(30),
      client: fc.constantFrom(...CLIENTS),
      isMissing: fc.integer({ min: 0, max: 9 }).map((n) => n < 3),
    }),
    { minLength: 8, maxLength: 24 },
  )
  .map((posts) => {
    const trees = new Map<number, string[][]>();
    return posts.flatMap(({ conversation, parent, client, isMissing }, index): ConversationMessage[] => {
      const tree = trees.get(conversation) ?? [];
      trees.set(conversation, tree);
      const ancestors = tree.length === 0 ? [] : (tree[parent % tree.length] ?? []);
      const id = `${conversation}-${String(index).padStart(2, '0')}@list.example`;
      tree.push([...ancestors, id]);
      // All conversations have the same subject, which must not join them.
      const subject = ancestors.length === 0 ? 'Plan' : 'Re: Plan';
      const message = { id, subject, from: `p${index % 5}@list.example`, ...writeIds(client, ancestors) };
      return isMissing ? [] : [message];
    });
  })
  .filter((messages) => messages.length > 1);

describe('reply trees with missing messages', () => {
  test('have the same threads in order of date, shuffled, duplicated, and two at a time', async () => {
    await fc.assert(
      fc.asyncProperty(
        conversations.chain((messages) =>
          fc.record({
            messages: fc.constant(messages),
            shuffled: fc.shuffledSubarray([...messages, ...messages.slice(0, 5)], {
              minLength: messages.length + Math.min(5, messages.length),
            }),
          }),
        ),
        async ({ messages, shuffled }) => {
          const expected = groupByLinks(messages);
          expect(await partitionAfter(messages)).toEqual(expected);
          expect(await partitionAfter(shuffled)).toEqual(expected);
          expect(await partitionAfter(shuffled, 2)).toEqual(expected);
          expect(comparePairs(expected, (id) => id.slice(0, 1)).falseJoins).toBe(0);
        },
      ),
      { numRuns: Number(process.env.CONVERSATION_RUNS ?? 15), seed: 20261122 },
    );
  }, 600_000);
});

describe('a mailing list', () => {
  const list = readMailingList();
  const conversationOf = new Map(list.map(({ id, conversation }) => [id, conversation]));
  const received = list.flatMap((message) => Array.from({ length: message.copies }, () => message));

  /** The order of a fixed pseudo-random sequence. */
  const shuffle = <T>(items: readonly T[], seed: number): T[] => {
    let state = seed;
    const keyed = items.map((item) => {
      state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
      return { item, key: state };
    });
    return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
  };

  test.each([
    ['in order of date', received],
    ['newest first', received.toReversed()],
    ['in another order', shuffle(received, 1)],
    ['in a third order', shuffle(received, 2)],
  ])('has one thread for each conversation %s', async (_order, order) => {
    const partition = await partitionAfter(order);
    expect(partition).toEqual(groupByLinks(received));
    const { recall, falseJoins } = comparePairs(partition, (id) => conversationOf.get(id) ?? id);
    expect(recall).toBeGreaterThanOrEqual(0.99);
    expect(falseJoins).toBe(0);
  });

  test('has the same threads when real messages are parsed and received concurrently', async () => {
    const { receive, inbox } = await arrangeInbox(database);
    const { readPartition } = await arrangeConversations(database, inbox);
    const waiting = shuffle(received, 3).entries();
    const receiveNext = async () => {
      for (const [copy, { id, subject, from, inReplyTo, references }] of waiting)
        await receive(
          mail(
            {
              From: from,
              To: 'garden@list.example',
              Subject: subject,
              'Message-ID': `<${id}>`,
              ...(inReplyTo === null ? {} : { 'In-Reply-To': inReplyTo }),
              ...(references.length === 0 ? {} : { References: references.join('\r\n ') }),
              'List-Id': '<garden.list.example>',
            },
            `Hello\r\n${'_'.repeat(20)}\r\ncopy ${copy}`,
          ),
        );
    };
    await Promise.all([receiveNext(), receiveNext(), receiveNext()]);
    expect(await readPartition()).toEqual(groupByLinks(received));
  }, 120_000);
});
