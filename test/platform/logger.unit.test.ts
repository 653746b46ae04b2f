import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { pino } from 'pino';
import { forwardLogEntry } from '../../workers/temporal-worker.ts';

const ROOT = resolve(import.meta.dirname, '../..');

test.each(['api/server.ts', 'workers/outbound.ts'])(
  '%s reports a failed start as one JSON line',
  (script) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [script], {
      cwd: ROOT,
      env: { PATH: process.env.PATH },
      encoding: 'utf8',
    });
    expect({ status, stderr }).toEqual({ status: 1, stderr: '' });
    const lines = stdout.trimEnd().split('\n');
    expect(lines).toHaveLength(1);
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({
      level: 60,
      msg: 'the process did not start',
      err: { message: expect.stringContaining('DATABASE_URL is required') },
    });
  },
);

test('lines of the Temporal SDK have their ids where the service’s own lines have them', () => {
  const lines: Record<string, unknown>[] = [];
  const logger = pino({}, { write: (line) => void lines.push(JSON.parse(line)) });
  forwardLogEntry(logger, {
    level: 'WARN',
    message: 'Activity failed',
    meta: {
      workflowId: 'send/msg_1',
      runId: 'run',
      activityType: 'recordSend',
      attempt: 2,
      taskQueue: 'outbound',
      error: new Error('down'),
    },
  });
  forwardLogEntry(logger, { level: 'INFO', message: 'Worker state changed' });
  expect(lines).toMatchObject([
    {
      level: 40,
      msg: 'Activity failed',
      workflowId: 'send/msg_1',
      activity: 'recordSend',
      attempt: 2,
      sdk: { taskQueue: 'outbound' },
      err: { message: 'down' },
    },
    { level: 30, msg: 'Worker state changed' },
  ]);
});
