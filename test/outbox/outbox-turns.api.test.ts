import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import type { Database } from '../../platform/database/database.ts';
import { type JsonParameter, json } from '../../platform/database/json.ts';
import { createOutbox, type Outbox, type OutboxOptions } from '../../platform/outbox/outbox.ts';
import type { OutboxCommand, StartCommand } from '../../platform/outbox/outbox-command.ts';
import { eventually } from '../support/eventually.ts';
import { createIsolatedDatabase } from '../support/isolated-database.ts';
import { countRows } from '../support/query.ts';

const logger = pino({ level: 'silent' });
const LONG_AGO = Date.now() - 3_600_000;

let database: Database;
beforeAll(async () => {
  database = await createIsolatedDatabase('outbox_turns');
});
afterAll(() => database?.close());
beforeEach(() => database.db.deleteFrom('outbox').execute());

const start = (workflowId: string, priorityKey: number, taskQueue: string, organizationId: string) =>
  ({
    workflowType: 'aWorkflow',
    workflowId,
    taskQueue,
    priority: { priorityKey, fairnessKey: organizationId },
    input: {},
    searchAttributes: {},
    summary: workflowId,
  }) satisfies StartCommand;

/** Rows that their process did not dispatch, the first one oldest. */
async function leaveBehind(organizationId: string, count: number, priorityKey = 3): Promise<void> {
  await database.systemTransaction(async ({ db }) => {
    for (let index = 0; index < count; index += 1)
      await db
        .insertInto('outbox')
        .values({
          org_id: organizationId,
          command: json({
            start: start(`${organizationId}/${priorityKey}/${index}`, priorityKey, 'a', organizationId),
          }),
          task_queue: 'a',
          priority: priorityKey,
          available_at: new Date(LONG_AGO + index),
        })
        .execute();
  });
}

/** Rows that wait in their process, which keeps them from the sweep. */
async function keepFromSweep(organizationId: string, count: number): Promise<void> {
  await database.systemTransaction(({ db }) =>
    db
      .insertInto('outbox')
      .columns(['org_id', 'command', 'task_queue', 'priority', 'available_at'])
      .expression((eb) =>
        eb
          .selectFrom(sql`generate_series(1, ${count}::int)`.as('n'))
          .select([
            sql<string>`${organizationId}::text`.as('org_id'),
            sql<JsonParameter<OutboxCommand>>`'{}'::jsonb`.as('command'),
            sql<string>`'a'`.as('task_queue'),
            sql<number>`3`.as('priority'),
            sql<Date>`now() + interval '1 minute'`.as('available_at'),
          ]),
      )
      .execute(),
  );
}

/** Temporal's side: records what arrives, and holds every call until it is released. */
class HeldTemporal {
  readonly arrived: string[] = [];
  readonly #held: (() => void)[] = [];
  holds = false;

  async dispatch({ start }: OutboxCommand): Promise<void> {
    this.arrived.push(start?.workflowId ?? '');
    if (this.holds) await new Promise<void>((resolve) => this.#held.push(resolve));
  }

  releaseOne(): void {
    this.#held.shift()?.();
  }

  release(): void {
    this.holds = false;
    for (const resume of this.#held) resume();
  }
}

function arrange(options: Pick<OutboxOptions, 'pacedQueues' | 'renewIntervalMs'> = {}): {
  temporal: HeldTemporal;
  outbox: Outbox;
} {
  const temporal = new HeldTemporal();
  return { temporal, outbox: createOutbox({ database, workflows: temporal, logger, ...options }) };
}

describe('the sweep', () => {
  test('leaves the rows of a long queue to the process in which they wait their turn', async () => {
    const { temporal, outbox } = arrange({ pacedQueues: ['a'], renewIntervalMs: 100 });
    temporal.holds = true;
    await database.systemTransaction(async (transaction) => {
      for (const name of ['first', 'second', 'third'])
        outbox.enqueue(transaction, 'org_flood', { start: start(name, 3, 'a', 'org_flood') });
    });
    await eventually(() => expect(temporal.arrived).toHaveLength(1));
    // As if the queue had been long: the sweep would take them.
    await database.db
      .updateTable('outbox')
      .set({ available_at: new Date(LONG_AGO) })
      .execute();
    temporal.releaseOne();
    const keptRows = () =>
      countRows(database.db.selectFrom('outbox').select('id').where('available_at', '>', new Date(LONG_AGO)));
    await eventually(async () => expect(await keptRows()).toBe(2));
    temporal.release();
    await outbox.drain();
  });

  test('does not let one organization’s rows hold back another’s', async () => {
    await leaveBehind('org_a_flood', 200);
    await leaveBehind('org_b', 1);
    await leaveBehind('org_c', 1);
    const { temporal, outbox } = arrange();
    expect(await outbox.sweep(30)).toBe(12);
    expect(temporal.arrived).toEqual(expect.arrayContaining(['org_b/3/0', 'org_c/3/0', 'org_a_flood/3/0']));
  });

  test('gives an organization the whole batch if no other one waits, oldest first', async () => {
    await leaveBehind('org_a_flood', 40);
    const { temporal, outbox } = arrange();
    expect(await outbox.sweep(30)).toBe(30);
    expect(temporal.arrived.toSorted()).toEqual(
      Array.from({ length: 30 }, (_, index) => `org_a_flood/3/${index}`).toSorted(),
    );
    expect(await outbox.sweep(30)).toBe(10);
    expect(await outbox.sweep(30)).toBe(0);
  });

  test('dispatches an organization’s own sends before its received messages', async () => {
    await leaveBehind('org_a', 50, 3);
    await leaveBehind('org_a', 2, 1);
    const { temporal, outbox } = arrange();
    expect(await outbox.sweep(2)).toBe(2);
    expect(temporal.arrived.toSorted()).toEqual(['org_a/1/0', 'org_a/1/1']);
  });

  test('dispatches slowly for an organization whose flood another process dispatches', async () => {
    for (const id of ['org_a_flood', 'org_b']) await leaveBehind(id, 8);
    await keepFromSweep('org_a_flood', 1_000);
    const arrived: string[] = [];
    const workflows = {
      async dispatch({ start: started }: OutboxCommand) {
        await pause(20);
        arrived.push(started?.workflowId.split('/')[0] ?? '');
      },
    };
    await createOutbox({ database, workflows, logger }).sweep(64);
    expect(arrived).toHaveLength(16);
    // Both have a burst, in which the flood's calls rest four times as long.
    expect(arrived.slice(arrived.lastIndexOf('org_b')).length).toBeGreaterThan(3);
  });

  test('takes a quarter of the share of an organization beside its flood, so that the batch ends as soon', async () => {
    for (const id of ['org_a_flood', 'org_b']) await leaveBehind(id, 20);
    await keepFromSweep('org_a_flood', 1_000);
    const { temporal, outbox } = arrange();
    expect(await outbox.sweep(32)).toBe(20);
    expect(temporal.arrived.filter((id) => id.startsWith('org_b'))).toHaveLength(16);
  });

  test('takes every organization once if there are more of them than rows in a batch', async () => {
    for (let index = 0; index < 8; index += 1) await leaveBehind(`org_${index}`, 3);
    const { temporal, outbox } = arrange();
    for (let batch = 0; batch < 2; batch += 1) expect(await outbox.sweep(4)).toBe(4);
    const organizations = temporal.arrived.map((id) => id.split('/')[0]);
    expect(new Set(organizations).size).toBeGreaterThanOrEqual(4);
    while ((await outbox.sweep(4)) > 0);
    expect(temporal.arrived).toHaveLength(24);
    expect(new Set(temporal.arrived).size).toBe(24);
  });
});

describe('the process that commits', () => {
  const enqueue = (outbox: Outbox, organizationId: string, queue: string, ids: string[]) =>
    database.systemTransaction(async (transaction) => {
      for (const id of ids)
        outbox.enqueue(transaction, organizationId, { start: start(id, 3, queue, organizationId) });
    });

  test('starts runs of another queue and of other organizations during a flood of starts', async () => {
    const { temporal, outbox } = arrange();
    temporal.holds = true;
    const flood = Array.from({ length: 100 }, (_, index) => `flood/${index}`);
    await enqueue(outbox, 'org_flood', 'inbound', flood);
    await enqueue(outbox, 'org_other', 'inbound', ['other']);
    await enqueue(outbox, 'org_flood', 'outbound', ['send']);
    await eventually(() => expect(temporal.arrived).toContain('send'));
    expect(temporal.arrived.length).toBeLessThan(20);
    temporal.release();
    await outbox.drain();
    expect(temporal.arrived.indexOf('other')).toBeLessThan(20);
    expect(temporal.arrived).toHaveLength(102);
    expect(await countRows(database.db.selectFrom('outbox').select('id'))).toBe(0);
  });

  test('waits for the commands of one organization, and for no other’s', async () => {
    const { temporal, outbox } = arrange();
    temporal.holds = true;
    await enqueue(outbox, 'org_flood', 'webhooks', ['flood']);
    await eventually(() => expect(temporal.arrived).toEqual(['flood']));
    temporal.holds = false;
    await enqueue(outbox, 'org_other', 'webhooks', ['other']);
    await outbox.drain('org_other');
    const drained = outbox.drain('org_flood').then(() => 'drained');
    expect(await Promise.race([drained, pause(50, 'waits')])).toBe('waits');
    temporal.release();
    expect(await drained).toBe('drained');
  });

  test('starts runs of a paced queue one at a time', async () => {
    const { temporal, outbox } = arrange({ pacedQueues: ['inbound'] });
    temporal.holds = true;
    const ids = ['first', 'second', 'third'];
    await enqueue(outbox, 'org_a', 'inbound', ids);
    await enqueue(outbox, 'org_a', 'webhooks', ['delivery/1', 'delivery/2']);
    await eventually(async () =>
      expect(temporal.arrived.sort()).toEqual(['delivery/1', 'delivery/2', 'first']),
    );
    temporal.release();
    await outbox.drain();
    expect(temporal.arrived).toEqual(expect.arrayContaining(ids));
  });

  test('rests after each start of a burst in a paced queue as long as the start took', async () => {
    const calls: { startedAt: number; endedAt: number }[] = [];
    const workflows = {
      async dispatch() {
        const startedAt = performance.now();
        await pause(20);
        calls.push({ startedAt, endedAt: performance.now() });
      },
    };
    const outbox = createOutbox({ database, workflows, logger, pacedQueues: ['inbound'] });
    const ids = Array.from({ length: 16 }, (_, index) => `mail/${index}`);
    await enqueue(outbox, 'org_a', 'inbound', ids);
    await outbox.drain();
    const all = calls.slice(1).map(({ startedAt }, index) => startedAt - (calls[index]?.endedAt ?? 0));
    expect(all).toHaveLength(15);
    const rests = all.slice(0, 4);
    // A timer may fire a millisecond early.
    for (const rest of rests) expect(rest).toBeGreaterThanOrEqual(18);
  });
});

test('a transaction enqueues more commands than one statement could insert', async () => {
  const temporal = new HeldTemporal();
  const outbox = createOutbox({ database, workflows: temporal, logger });
  const commands = 14_000;
  await database.systemTransaction(async (transaction) => {
    for (let index = 0; index < commands; index += 1)
      outbox.enqueue(transaction, 'org_many', { start: start(`many/${index}`, 3, 'a', 'org_many') });
  });
  const row = await database.db
    .selectFrom('outbox')
    .select(({ fn }) => fn.max('id').as('last'))
    .executeTakeFirst();
  expect(row?.last).toBeGreaterThan(commands - 1);
  await outbox.drain();
  // One organization has so many waiting in a process; the sweep dispatches the others.
  expect(new Set(temporal.arrived).size).toBe(5_000);
});
