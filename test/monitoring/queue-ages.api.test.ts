import { expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { json } from '../../platform/database/json.ts';
import { newId } from '../../platform/ids.ts';
import { createQueueAges } from '../../platform/outbox/queue-ages.ts';
import { installQueueAgeMetrics } from '../../workers/worker-metrics.ts';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();
const logger = pino({ level: 'silent' });

/** Describes queues whose oldest task has waited as given, by queue and type; undefined is a server without statistics. */
function temporalWith(ages: Record<string, [workflows: number, activities: number] | undefined>) {
  const describeTaskQueue = async ({
    taskQueue,
    taskQueueType,
  }: {
    taskQueue: { name: string };
    taskQueueType: number;
  }) => {
    if (!(taskQueue.name in ages)) throw new Error('Temporal is down');
    const seconds = ages[taskQueue.name]?.[taskQueueType - 1];
    return seconds === undefined ? {} : { stats: { approximateBacklogAge: { seconds, nanos: 500_000_000 } } };
  };
  return {
    connection: {
      withDeadline: (_deadline: number, work: () => Promise<unknown>) => work(),
      workflowService: { describeTaskQueue },
    },
  } as unknown as Pick<Client, 'connection'>;
}

const QUEUES = ['queue-of-this-test', 'without-statistics', 'unreachable'];
const agesFor = (ages: Parameters<typeof temporalWith>[0], now?: () => number) =>
  createQueueAges({
    // The API's own login: it sees ages across organizations, and no row.
    database: app.database,
    temporal: temporalWith(ages),
    namespace: 'default',
    queues: QUEUES,
    onError: (error) => logger.warn(error),
    ...(now ? { now } : {}),
  });

test('reports how long the oldest start of each queue has waited, in the outbox and in Temporal', async () => {
  const organizationId = newId('organization');
  const leave = (ageMs: number, deadAt: Date | null = null) =>
    app.worker.db
      .insertInto('outbox')
      .values({
        org_id: organizationId,
        command: json({}),
        task_queue: 'queue-of-this-test',
        priority: 1,
        available_at: new Date('9999-01-01'),
        created_at: new Date(Date.now() - ageMs),
        dead_at: deadAt,
      })
      .execute();
  await leave(90_000);
  await leave(10_000);
  await leave(500_000, new Date());
  const ages = await agesFor({ 'queue-of-this-test': [12, 40], 'without-statistics': undefined }).read();
  expect(ages).toEqual({
    'queue-of-this-test': { outboxSeconds: expect.any(Number), temporalSeconds: 40.5 },
    'without-statistics': { outboxSeconds: 0, temporalSeconds: null },
    unreachable: { outboxSeconds: 0, temporalSeconds: null },
  });
  expect(ages['queue-of-this-test']?.outboxSeconds).toBeGreaterThanOrEqual(90);
  expect(ages['queue-of-this-test']?.outboxSeconds).toBeLessThan(300);
  await app.worker.db.deleteFrom('outbox').where('org_id', '=', organizationId).execute();
});

test('is looked up once for calls within five seconds', async () => {
  let now = 0;
  const waits: [number, number] = [1, 1];
  const ages = agesFor({ 'queue-of-this-test': waits }, () => now);
  const temporalSeconds = async () => (await ages.read())['queue-of-this-test']?.temporalSeconds;
  expect(await temporalSeconds()).toBe(1.5);
  waits[0] = 7;
  now = 4_999;
  expect(await temporalSeconds()).toBe(1.5);
  now = 5_000;
  expect(await temporalSeconds()).toBe(7.5);
});

test('is a metric by queue, without what is unknown', async () => {
  const registry = new Registry();
  installQueueAgeMetrics(
    registry,
    agesFor({ 'queue-of-this-test': [3, 0], 'without-statistics': undefined }),
  );
  const text = await registry.metrics();
  expect(text).toContain(
    'agent_email_queue_oldest_seconds{task_queue="queue-of-this-test",waits_in="temporal"} 3.5',
  );
  expect(text).toContain(
    'agent_email_queue_oldest_seconds{task_queue="without-statistics",waits_in="outbox"} 0',
  );
  expect(text).not.toContain('task_queue="unreachable",waits_in="temporal"');
});
