import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { readDevSettings, requiredPorts } from '../../dev/settings.ts';
import { commandLine, processOf, startChild, stopLeftover } from '../../dev/stack/child-process.ts';
import { assertPortsFree, findFreePort } from '../../dev/stack/ports.ts';
import { startConcurrently } from '../../dev/stack/start-concurrently.ts';
import { waitUntil } from '../../dev/stack/wait.ts';
import { eventually } from '../support/eventually.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parts-test-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function child(script: string, more: { stopTimeoutMs?: number } = {}) {
  return startChild({
    name: 'Child',
    command: process.execPath,
    args: ['-e', script],
    logFile: join(folder, 'child.log'),
    pidFile: join(folder, 'child.pid'),
    ...more,
  });
}

describe('ports', () => {
  test('accepts free ports and names used and duplicate ones with their variables', async () => {
    const free = await findFreePort();
    await assertPortsFree([{ port: free, purpose: 'API', variable: 'API_PORT' }]);
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const taken = (server.address() as { port: number }).port;
    await expect(
      assertPortsFree([
        { port: taken, purpose: 'API', variable: 'API_PORT' },
        { port: free, purpose: 'mail UI', variable: 'A' },
        { port: free, purpose: 'relay', variable: 'B' },
      ]),
    ).rejects.toThrow(
      `Port ${taken} (API) is taken: stop what listens there, or set API_PORT to another port.\nPort ${free} is wanted by both A and B.`,
    );
    server.close();
  });

  test('rejects a setting that is not a port, and needs no port for an existing Temporal server', () => {
    expect(() => readDevSettings({ DEV_S3_PORT: '70000' })).toThrow('DEV_S3_PORT must be a port');
    const variables = requiredPorts(readDevSettings({ TEMPORAL_ADDRESS: 'elsewhere:7233' })).map(
      (p) => p.variable,
    );
    expect(variables).not.toContain('DEV_TEMPORAL_PORT');
    expect(variables).toContain('API_PORT');
  });
});

describe('child processes', () => {
  test('report a failure with the end of the log', async () => {
    const failing = await child('console.log("before"); console.error("the reason"); process.exit(3)');
    expect(await failing.exited).toBe('ended with status 3');
    expect(failing.failure()?.message).toMatch(
      /^Child ended with status 3\. .*child\.log ends with:\n {2}before\n {2}the reason$/s,
    );
  });

  test('are killed if they ignore the signal until the timeout', async () => {
    const stubborn = await child(
      'process.on("SIGTERM", () => {}); console.log("up"); setInterval(() => {}, 1000)',
      { stopTimeoutMs: 100 },
    );
    await eventually(() => expect(readFileSync(join(folder, 'child.log'), 'utf8')).toContain('up'));
    await stubborn.stop();
    expect(stubborn.exitReason()).toBe('ended by SIGKILL');
    await stubborn.stop();
  });

  test('report a missing program in one line', async () => {
    const absent = startChild({ name: 'X', command: '/no/such', args: [], logFile: join(folder, 'x.log') });
    await expect(absent).rejects.toThrow('X could not be started');
  });

  test('are stopped by their pid file, unless another program has the pid', async () => {
    const leftover = await child('setInterval(() => {}, 1000)');
    const pidFile = join(folder, 'child.pid');
    await eventually(() => expect(processOf(pidFile)).toBe(leftover.pid));
    const reusedPidFile = join(folder, 'stranger.pid');
    writeFileSync(reusedPidFile, `${leftover.pid}\n/bin/another program\n`);
    await stopLeftover(reusedPidFile, 'stranger', () => undefined);
    expect(commandLine(leftover.pid)).toBeDefined();
    await stopLeftover(pidFile, 'child', () => undefined);
    expect(await leftover.exited).toBe('ended by SIGTERM');
  });
});

describe('waiting and starting', () => {
  test('a wait ends with the last error, with a failure, or when aborted', async () => {
    const never = () => Promise.reject(new Error('not yet'));
    const options = { what: 'It', timeoutMs: 30, intervalMs: 5 };
    await expect(waitUntil(never, options)).rejects.toThrow('It did not become ready within');
    await expect(waitUntil(never, { ...options, failed: () => new Error('dead') })).rejects.toThrow('dead');
    const signal = AbortSignal.abort(new Error('stopped'));
    await expect(waitUntil(never, { ...options, signal })).rejects.toThrow('stopped');
  });

  test('a failed start aborts the others and rejects after all have settled', async () => {
    let settled = false;
    const slow = async (signal: AbortSignal) => {
      await sleep(60_000, undefined, { signal }).catch(() => undefined);
      await sleep(20);
      settled = true;
    };
    const failing = () => Promise.reject(new Error('the first'));
    await expect(startConcurrently(new AbortController().signal, [slow, failing])).rejects.toThrow(
      'the first',
    );
    expect(settled).toBe(true);
  });
});
