import { BATCH_SIZE, deleteExpiredBatch } from '../domain/messages/delete-expired-batch.ts';
import { createMessageService } from '../domain/messages/message.service.ts';
import { type MessageFilter, parseAddressFilter } from '../domain/messages/message-filter.ts';
import { createThreadService } from '../domain/messages/thread.service.ts';
import { createMetricService } from '../domain/metrics/metric.service.ts';
import { applyMetricDeltas } from '../domain/metrics/metric-deltas.ts';
import { DAY_MS } from '../domain/metrics/metric-range.ts';
import { createWebhookEvents } from '../domain/webhooks/webhook-events.ts';
import { createDatabase, type Database } from '../platform/database/database.ts';
import type { Outbox } from '../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../platform/pagination.ts';
import { withBenchDatabase } from './bench-database.ts';
import { type FilledInbox, fillInbox, idsOf, scopeOf, withoutWordIndex } from './fill-messages.ts';
import { percentile } from './measure.ts';

const LARGE = Number(process.env.BENCH_SCALE_MESSAGES ?? 1_000_000);
const SMALL = Math.min(10_000, LARGE);
const WARM_UP = 10;
const RUNS = 60;
/** Deletions change the inbox that they measure: together they delete a sixth of the small one. */
const DELETIONS = 8;
const TARGET = 1.5;

/** Prepares one operation for an inbox. */
type Operation = (inbox: FilledInbox) => Promise<() => Promise<unknown>>;

/**
 * `npm run bench -- scale`: database operations of the API and of retention, in an inbox of 10,000 messages and in one of
 * BENCH_SCALE_MESSAGES (1,000,000) in the same database. The large one may take up to 1.5 times as long.
 */
export function benchScale(): Promise<void> {
  return withBenchDatabase(async ({ owner, apiUrl, workerUrl }) => {
    const inboxes = [
      { name: 'small', count: SMALL },
      { name: 'large', count: LARGE },
    ];
    await withoutWordIndex(owner, async () => {
      for (const inbox of inboxes) await fillInbox(owner, inbox);
    });
    const connect = (url: string) => createDatabase({ url, poolSize: 2 });
    const [api, worker] = [await connect(apiUrl), await connect(workerUrl)];
    let folded = 0;
    for (let some = await applyMetricDeltas(worker); some > 0; some = await applyMetricDeltas(worker))
      folded += some;
    console.log(`${folded} metric deltas applied`);
    await owner.query('vacuum analyze');
    const rows: Record<string, object> = {};
    for (const [name, operation] of Object.entries(operations(api)))
      rows[name] = await compare(operation, inboxes, RUNS);
    rows[`retention, a batch of ${BATCH_SIZE}`] = await compare(deletion(worker), inboxes, DELETIONS);
    console.table(rows);
    await Promise.all([api.close(), worker.close()]);
  });
}

const outbox: Outbox = { enqueue: () => undefined, sweep: async () => 0, drain: async () => undefined };

function operations(database: Database): Record<string, Operation> {
  const messages = createMessageService({ database });
  const threads = createThreadService({ database });
  const metrics = createMetricService({ database });
  const listed =
    (filter: MessageFilter, page = 1): Operation =>
    (inbox) => {
      const asked = { ...filter, inboxId: idsOf(inbox).inbox };
      return pageReader((request) => messages.list(scopeOf(inbox), asked, request), page);
    };
  const threaded =
    (page: number): Operation =>
    (inbox) =>
      pageReader((request) => threads.list(scopeOf(inbox), { inboxId: idsOf(inbox).inbox }, request), page);
  // A range that both have: the small inbox has a week of messages.
  const days = () => ({ start: new Date(Date.now() - 6 * DAY_MS) });
  return {
    'list messages, first page': listed({}),
    'list messages, page 100': listed({}, 100),
    'list threads, first page': threaded(1),
    'list threads, page 30': threaded(30),
    'search, a rare word': listed({ q: 'sesquipedalian' }),
    'search, a frequent word': listed({ q: 'word1' }),
    'search, two words and a subject': listed({ q: 'word10 word200 subject:word7' }),
    'search, a rare label': listed({ label: 'rare' }),
    'search, a rare sender': listed({ from: parseAddressFilter('rare@example.com') }),
    'metrics, 6 days by the hour': async (inbox) => () => metrics.getActivity(scopeOf(inbox), days()),
    'metrics, summary of an inbox': async (inbox) => () =>
      metrics.getSummary(scopeOf(inbox), { ...days(), inboxId: idsOf(inbox).inbox }),
    'metrics, the last 24 hours': async (inbox) => () => metrics.getOverview(scopeOf(inbox)),
  };
}

/** Walks to the page, and returns a function that reads it again. */
async function pageReader(
  list: (request: PageRequest) => Promise<Page<unknown>>,
  page: number,
): Promise<() => Promise<unknown>> {
  let request: PageRequest = { limit: 25, order: 'desc' };
  for (let at = 1; at < page; at += 1) {
    const { next } = await list(request);
    if (next) request = { ...request, after: next };
  }
  return () => list(request);
}

/** Deletes the oldest messages in batches, each of which starts where the previous one ended. */
function deletion(database: Database): Operation {
  return async (inbox) => {
    const { org, env } = idsOf(inbox);
    let after: string | null = null;
    return async () => {
      const { last } = await database.systemTransaction((transaction) =>
        deleteExpiredBatch(
          transaction,
          { outbox, events: createWebhookEvents({ outbox }) },
          {
            organizationId: org,
            environmentId: env,
            cutoff: new Date(),
            after,
            now: new Date(),
          },
        ),
      );
      after = last;
    };
  };
}

/** Alternates between the inboxes, so that other load on the machine affects both. */
async function compare(operation: Operation, inboxes: FilledInbox[], runs: number): Promise<object> {
  const asked = await Promise.all(
    inboxes.map(async (inbox) => ({ inbox, run: await operation(inbox), durations: [] as number[] })),
  );
  const warmUp = Math.min(WARM_UP, Math.floor(runs / 4));
  for (let run = 0; run < warmUp + runs; run += 1) {
    for (const one of asked) {
      const startedAt = performance.now();
      await one.run();
      if (run >= warmUp) one.durations.push(performance.now() - startedAt);
    }
  }
  const figures: Record<string, number | string> = {};
  for (const { inbox, durations } of asked) {
    figures[`p50 ms of ${inbox.count}`] = round(percentile(durations, 0.5));
    figures[`p95 ms of ${inbox.count}`] = round(percentile(durations, 0.95));
  }
  const [small = 1, large = 1] = asked.map(({ durations }) => percentile(durations, 0.5));
  return {
    ...figures,
    growth: round(large / small),
    [`target ≤ ${TARGET}`]: large / small <= TARGET ? 'met' : 'MISSED',
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
