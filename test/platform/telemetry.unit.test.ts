import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, expect, test } from '@jest/globals';
import { createMetricsRegistry } from '../../platform/telemetry.ts';
import { eventually } from '../support/eventually.ts';

const registry = createMetricsRegistry('test');
afterAll(() => registry.clear());

const readMetric = async (name: string) =>
  Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(await registry.metrics())?.[1]);

test('reports for how long the event loop was blocked', async () => {
  const BLOCK_MS = 200;
  await eventually(async () => {
    await registry.metrics();
    await nextTurn();
    const end = performance.now() + BLOCK_MS;
    while (performance.now() < end);
    // The monitor notices the delay in one of the next turns.
    await nextTurn();
    await nextTurn();
    expect(await readMetric('nodejs_eventloop_lag_max_seconds')).toBeGreaterThan(BLOCK_MS / 2_000);
  });
});

test('has every process metric that an alert uses', async () => {
  const rules = readFileSync(resolve(import.meta.dirname, '../../docs/monitoring/alerts.yml'), 'utf8');
  const used = [...new Set(rules.match(/\bnodejs_\w+/g))];
  expect(used).toContain('nodejs_eventloop_lag_max_seconds');
  const exposed = await registry.metrics();
  for (const name of used) expect(exposed).toMatch(new RegExp(`^${name} `, 'm'));
});
