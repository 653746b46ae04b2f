import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { pino } from 'pino';
import { announceProcess, purgeProcesses } from '../../domain/monitoring/announce-process.ts';
import { recordSweep } from '../../domain/monitoring/sweeps.ts';
import { createDependencies } from '../../platform/dependencies.ts';
import { readVersion } from '../../platform/telemetry.ts';
import { eventually } from '../support/eventually.ts';
import { createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';

const logger = pino({ level: 'silent' });
let isTemporalUp = true;
const NEXT = new Date('2026-11-23T03:00:00.000Z');
const PAUSED = { id: 'reconcile', isPaused: true, note: 'by ada', lastRunAt: null, nextRunAt: NEXT };
const app = useTestApp({
  dependencies: createDependencies({
    probes: {
      database: async () => undefined,
      temporal: async () => {
        if (!isTemporalUp) throw new Error('no answer');
      },
      storage: async () => undefined,
    },
    logger,
    // Each read looks again.
    now: (() => {
      let time = 0;
      return () => {
        time += 10_000;
        return time;
      };
    })(),
  }),
  queueAges: {
    read: async () => ({ outbound: { outboxSeconds: 0, temporalSeconds: isTemporalUp ? 2 : null } }),
  },
  schedules: {
    async list() {
      if (!isTemporalUp) throw new Error('no answer');
      return [PAUSED];
    },
    async find(id) {
      return [PAUSED, { ...PAUSED, id: 'active', isPaused: false }].find((schedule) => schedule.id === id);
    },
  },
});

async function readHealth(role: 'support' | 'admin' = 'support') {
  const { token } = await createStaff(app, { role });
  const response = await app.call('/admin/health', { token });
  expect(response.statusCode).toBe(200);
  return response.json();
}

describe('the health of the service', () => {
  test('has dependencies with latency, queues, outbox, sweeps and schedules', async () => {
    const { organizationId } = await createOrganization(app.worker);
    await query(
      app.worker,
      sql`insert into outbox (org_id, command, priority, available_at, created_at, dead_at, last_error)
      select ${organizationId}, '{}', 3, now() + interval '1 day', now() - interval '1 minute', dead, 'no namespace'
      from (values (null::timestamptz), (now())) rows (dead) returning id`,
    );
    await recordSweep(app.worker, 'reconcile');
    const health = await readHealth();
    expect(health).toMatchObject({
      dependencies: [
        { name: 'database', status: 'ok', latency_ms: expect.any(Number) },
        { name: 'temporal', status: 'ok' },
        { name: 'storage', status: 'ok' },
      ],
      queues: [{ name: 'outbound', outbox_seconds: 0, temporal_seconds: 2 }],
      schedules: [{ id: 'reconcile', paused: true, note: 'by ada', next_run_at: NEXT.toISOString() }],
    });
    expect(health.outbox.waiting).toBeGreaterThan(0);
    expect(health.outbox.oldest_seconds).toBeGreaterThanOrEqual(60);
    expect(health.outbox.given_up).toBeGreaterThan(0);
    expect(health.outbox.last_error).toEqual(expect.any(String));
    const [sweep] = health.sweeps.filter(({ name }: { name: string }) => name === 'reconcile');
    expect(Date.now() - Date.parse(sweep.finished_at)).toBeLessThan(60_000);
    await query(app.worker, sql`delete from outbox where org_id = ${organizationId} returning id`);
  });

  test('says what is unknown while Temporal is down', async () => {
    isTemporalUp = false;
    const health = await readHealth();
    isTemporalUp = true;
    expect(health.dependencies[1]).toMatchObject({ name: 'temporal', status: 'unavailable' });
    expect(health).toMatchObject({ schedules: null, queues: [{ temporal_seconds: null }] });
    expect(health.outbox).not.toBeNull();
  });

  test('lists running processes with their versions, and not those that stopped or are silent', async () => {
    const names = async () => (await readHealth()).processes.map(({ name }: { name: string }) => name);
    const api = announceProcess(app.database, { name: 'api of a test', logger });
    const worker = announceProcess(app.worker, { name: 'worker of a test', logger, intervalMs: 20 });
    await eventually(async () =>
      expect(await names()).toEqual(expect.arrayContaining(['api of a test', 'worker of a test'])),
    );
    const { processes } = await readHealth();
    expect(processes[0]).toMatchObject({ version: readVersion(), host: expect.any(String) });
    await api.stop();
    expect(await names()).not.toContain('api of a test');

    const age = (interval: string) =>
      query(
        app.worker,
        sql`update processes set last_seen_at = now() - ${interval}::interval where name = 'worker of a test' returning id`,
      );
    // It is seen again with its next heartbeat.
    await age('2 minutes');
    await eventually(async () => expect(await names()).toContain('worker of a test'));
    await worker.stop();

    const crashed = announceProcess(app.worker, { name: 'crashed', logger });
    await eventually(async () => expect(await names()).toContain('crashed'));
    await query(
      app.worker,
      sql`update processes set last_seen_at = now() - interval '2 minutes' where name = 'crashed' returning id`,
    );
    expect(await names()).not.toContain('crashed');
    const stored = () => query(app.worker, sql`select from processes where name = 'crashed'`);
    await purgeProcesses(app.worker);
    expect(await stored()).toHaveLength(1);
    await query(
      app.worker,
      sql`update processes set last_seen_at = now() - interval '2 hours' where name = 'crashed' returning id`,
    );
    await purgeProcesses(app.worker);
    expect(await stored()).toEqual([]);
    await crashed.stop();
  });
});
