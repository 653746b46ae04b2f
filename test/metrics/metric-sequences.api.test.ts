import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { createMetricService } from '../../domain/metrics/metric.service.ts';
import { COUNT_COLUMNS, type MetricCounts, zeroCounts } from '../../domain/metrics/metric-counts.ts';
import { applyMetricDeltas } from '../../domain/metrics/metric-deltas.ts';
import { startOfHour } from '../../domain/metrics/metric-range.ts';
import { columnOf } from '../../platform/database/columns-of.ts';
import { arrangeSending } from '../support/outbound-mail.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';

const worker = useWorkerDatabase();
const api = useApiDatabase();

const TIMES = ['sentAt', 'deliveredAt', 'bouncedAt', 'complainedAt'] as const;
const COUNT_OF = {
  sentAt: 'sent',
  deliveredAt: 'delivered',
  bouncedAt: 'bounced',
  complainedAt: 'complained',
} as const;
const MESSAGES = 4;
const NOW = new Date('2026-11-21T12:00:00.000Z');

const hoursAgo = fc.integer({ min: 0, max: 5 });
const step = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('changes' as const),
      message: fc.nat(MESSAGES - 1),
      // In one statement, like the sweep.
      times: fc.uniqueArray(fc.constantFrom(...TIMES), { minLength: 0, maxLength: 3 }),
      hoursAgo,
      isRejected: fc.boolean(),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('deletes' as const), message: fc.nat(MESSAGES - 1) }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('folds' as const) }) },
);

/** State of a message so far. */
interface Known {
  times: Set<(typeof TIMES)[number]>;
  isRejected: boolean;
  isDeleted: boolean;
}

test('counts each event once, in its hour, for any order of changes', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25 }), async (steps) => {
      const { send, inbox, scope } = await arrangeSending(worker);
      const ids = await Promise.all(
        Array.from({ length: MESSAGES }, (_, index) => send(`${index}@people.example`)),
      );
      const known = ids.map((): Known => ({ times: new Set(), isRejected: false, isDeleted: false }));
      const expected = new Map<number, MetricCounts>();
      const add = (at: Date, name: keyof MetricCounts) => {
        const hour = startOfHour(at).getTime();
        const counts = expected.get(hour) ?? zeroCounts();
        counts[name] += 1;
        expected.set(hour, counts);
      };
      for (const taken of steps) {
        if (taken.kind === 'folds') {
          await Promise.all([applyMetricDeltas(worker), applyMetricDeltas(worker)]);
          continue;
        }
        const [id = '', facts] = [ids[taken.message], known[taken.message]];
        if (!facts || facts.isDeleted) continue;
        if (taken.kind === 'deletes') {
          facts.isDeleted = true;
          await worker.db.deleteFrom('messages').where('id', '=', id).execute();
          continue;
        }
        const at = new Date(NOW.getTime() - taken.hoursAgo * 3_600_000 - 1);
        const fresh = taken.times.filter((time) => !facts.times.has(time));
        if (fresh.some((time) => time === 'sentAt' || time === 'bouncedAt'))
          if (!facts.times.has('sentAt') && !facts.times.has('bouncedAt')) add(at, 'attempted');
        for (const time of fresh) {
          add(at, COUNT_OF[time]);
          facts.times.add(time);
        }
        if (taken.isRejected && !facts.isRejected) {
          add(at, 'rejected');
          facts.isRejected = true;
        }
        await worker.db
          .updateTable('messages')
          .set({
            ...Object.fromEntries(taken.times.map((time) => [columnOf(MessageEntity, time), at])),
            ...(facts.isRejected ? { status: 'rejected' } : {}),
            updated_at: at,
          })
          .where('id', '=', id)
          .execute();
      }
      const metrics = createMetricService({ database: api, now: () => NOW });
      for (const filter of [{}, { inboxId: inbox.id }, { domain: inbox.domain }]) {
        const hours = await metrics.getActivity(scope, filter);
        const busy = hours.filter((hour) => COUNT_COLUMNS.some((name) => hour[name] > 0));
        expect(busy.map(({ hour, ...counts }) => [hour.getTime(), counts])).toEqual(
          [...expected].sort(([a], [b]) => a - b),
        );
      }
    }),
    { numRuns: 25 },
  );
});
