import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from '@jest/globals';

const ROOT = resolve(import.meta.dirname, '../..');
const inspect = (...paths: string[]) =>
  spawnSync(process.execPath, ['dev/inspect-mail.ts', ...paths], { cwd: ROOT, encoding: 'utf8' });

test('mail:inspect prints a line of JSON for each message and exits with 0', () => {
  const { status, stdout, stderr } = inspect(
    'test/fixtures/mime/flowed.eml',
    'test/fixtures/bounces/exim-rcpt.eml',
  );
  const lines = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { kind: string });
  expect(lines.map(({ kind }) => kind)).toEqual(['mail', 'bounce']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

test('mail:inspect exits with an error for a file that does not exist, and without arguments', () => {
  expect(inspect('test/fixtures/mime/flowed.eml', 'missing.eml').status).toBe(1);
  expect(inspect().status).toBe(2);
});
