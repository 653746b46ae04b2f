import { expect, test } from '@jest/globals';
import { type Client, ScheduleNotFoundError, type ScheduleOptions, ServiceError } from '@temporalio/client';
import { pino } from 'pino';
import { SCHEDULES, schedulesFor, watchSchedules } from '../../workers/schedules.ts';

const schedule = { scheduleId: 'reconcile' } as ScheduleOptions;
const failedPrecondition = () => {
  const cause = Object.assign(new Error('Unable to query workflow due to Workflow Task in failed state.'), {
    code: 9,
    details: '',
    metadata: {},
  });
  return new ServiceError('Failed to describe schedule', { cause });
};

/** Temporal with one schedule, and what was done to it. */
function arrange(states: ('runs' | 'broken' | 'away')[]) {
  const done: string[] = [];
  let isDeleted = false;
  const handle = {
    describe: async () => {
      if (isDeleted) throw new ScheduleNotFoundError('no such schedule', 'reconcile');
      const state = states.shift() ?? 'runs';
      if (state === 'broken') throw failedPrecondition();
      if (state === 'away') throw new Error('14 UNAVAILABLE');
      return { state: { paused: false } };
    },
    delete: async () => {
      done.push('delete');
      isDeleted = true;
    },
  };
  const client = {
    getHandle: () => handle,
    create: async () => {
      done.push('create');
      isDeleted = false;
    },
  };
  return { done, temporal: { schedule: client } as unknown as Pick<Client, 'schedule'> };
}

async function checkTimes(count: number, states: Parameters<typeof arrange>[0]) {
  const { done, temporal } = arrange(states);
  const logger = pino({ level: 'silent' });
  const watch = await watchSchedules({ temporal, logger, schedules: [schedule], intervalMs: 3_600_000 });
  for (let checks = 1; checks < count; checks += 1) await watch.check();
  watch.stop();
  return { done, state: watch.states.get('reconcile') };
}

test('a schedule that Temporal can no longer run is replaced after five checks', async () => {
  const broken = Array.from({ length: 5 }, () => 'broken' as const);
  expect(await checkTimes(4, [...broken])).toEqual({ done: [], state: undefined });
  expect(await checkTimes(5, [...broken])).toEqual({ done: ['delete'], state: undefined });
  expect(await checkTimes(6, [...broken])).toEqual({ done: ['delete', 'create'], state: 'active' });
});

test('a schedule is kept while Temporal is away, and if it runs in between', async () => {
  const away = Array.from({ length: 9 }, () => 'away' as const);
  expect((await checkTimes(9, away)).done).toEqual([]);
  const flickering = Array.from({ length: 4 }, () => 'broken' as const);
  expect((await checkTimes(9, [...flickering, 'runs', ...flickering])).done).toEqual([]);
});

test('starts no runs for billing without billing', () => {
  const idsFor = (isEnabled: boolean) =>
    schedulesFor({ BILLING_ENABLED: isEnabled }).map(({ scheduleId }) => scheduleId);
  const all = SCHEDULES.map(({ scheduleId }) => scheduleId);
  expect(idsFor(true)).toEqual(all);
  expect(idsFor(false)).toEqual(all.filter((id) => id !== 'meter-usage' && id !== 'reconcile-billing'));
});
