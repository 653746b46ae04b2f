import { createMessageService } from '../domain/messages/message.service.ts';
import { type MessageFilter, parseAddressFilter } from '../domain/messages/message-filter.ts';
import { createDatabase } from '../platform/database/database.ts';
import type { PageRequest } from '../platform/pagination.ts';
import { withBenchDatabase } from './bench-database.ts';
import { type FilledInbox, fillInbox, scopeOf, withoutWordIndex } from './fill-messages.ts';
import { percentile } from './measure.ts';

const MESSAGES = Number(process.env.BENCH_SEARCH_MESSAGES ?? 1_000_000);
const RUNS = 50;

/**
 * `npm run bench -- search`: pages of lists and searches, with the API's queries, in an inbox of 10,000 messages and in
 * one of BENCH_SEARCH_MESSAGES (1,000,000) in the same database.
 */
export function benchSearch(): Promise<void> {
  return withBenchDatabase(async ({ owner, apiUrl }) => {
    const inboxes = [
      { name: 'small', count: Math.min(10_000, MESSAGES) },
      { name: 'large', count: MESSAGES },
    ];
    await withoutWordIndex(owner, async () => {
      for (const inbox of inboxes) await fillInbox(owner, inbox);
    });
    await owner.query('analyze');
    await measure(apiUrl, inboxes);
  });
}

/** Name, filter and page number. */
const QUESTIONS: [string, MessageFilter, number][] = [
  ['list, first page', {}, 1],
  ['list, page 100', {}, 100],
  ['a rare word (30 messages)', { q: 'sesquipedalian' }, 1],
  ['a word in one of 600', { q: 'word10000' }, 1],
  ['a word in every second', { q: 'word1' }, 1],
  ['the same, page 20', { q: 'word1' }, 20],
  ['two words and a subject', { q: 'word10 word200 subject:word7' }, 1],
  ['from: and a word', { q: 'from:sender42 word1' }, 1],
  ['a rare label', { label: 'rare' }, 1],
  ['a sender', { from: parseAddressFilter('sender42@example.com') }, 1],
  ['no match', { q: 'nowhere' }, 1],
];

async function measure(apiUrl: string, inboxes: FilledInbox[]): Promise<void> {
  const database = createDatabase({ url: apiUrl, poolSize: 2 });
  const messages = createMessageService({ database });
  const rows: Record<string, Record<string, number>> = {};
  for (const { name, count } of inboxes) {
    const scope = scopeOf({ name });
    for (const [question, filter, pages] of QUESTIONS) {
      const asked = { ...filter, inboxId: `inb_${name}` };
      let page: PageRequest = { limit: 25, order: 'desc' };
      for (let turned = 1; turned < pages; turned += 1) {
        const { next } = await messages.list(scope, asked, page);
        if (next) page = { ...page, after: next };
      }
      const durations: number[] = [];
      for (let run = 0; run < RUNS; run += 1) {
        const startedAt = performance.now();
        await messages.list(scope, asked, page);
        durations.push(performance.now() - startedAt);
      }
      rows[question] = {
        ...rows[question],
        [`p50 ms of ${count}`]: Number(percentile(durations, 0.5).toFixed(1)),
        [`p99 ms of ${count}`]: Number(percentile(durations, 0.99).toFixed(1)),
      };
    }
  }
  console.table(rows);
  await database.close();
}
