import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { findFreePort } from '../../dev/stack/ports.ts';

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'demo-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function demo(...flags: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['dev/demo.ts', ...flags], {
    cwd: resolve(import.meta.dirname, '../..'),
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

describe('the demo fails with one line if', () => {
  test('the service was never started', () => {
    const file = join(folder, 'none.json');
    expect(demo('--first-run', file)).toEqual({
      status: 1,
      stdout: '',
      stderr: `${file} does not exist: start the service first (npm start) and wait until it is ready.\n`,
    });
  });

  test('the service was stopped', async () => {
    const file = join(folder, 'first-run.json');
    const port = await findFreePort();
    writeFileSync(file, JSON.stringify({ base_url: `http://127.0.0.1:${port}`, agent_key: 'k' }));
    expect(demo('--first-run', file)).toEqual({
      status: 1,
      stdout: '',
      stderr: `http://127.0.0.1:${port} does not respond (ECONNREFUSED): start the service first (npm start).\n`,
    });
  });

  test('an option is unknown', () => {
    const { status, stderr } = demo('--fast');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Unknown option '--fast'.*\n$/);
  });
});
