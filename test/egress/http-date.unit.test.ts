import { execFileSync } from 'node:child_process';
import { resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { parseHttpDate } from '../../platform/egress/http-date.ts';

test.each([
  ['Sun, 06 Nov 1994 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
  ['Sunday, 06-Nov-94 08:49:37 GMT', '1994-11-06T08:49:37.000Z'],
  ['Sun Nov  6 08:49:37 1994', '1994-11-06T08:49:37.000Z'],
  ['Sat Nov 21 12:00:10 2026', '2026-11-21T12:00:10.000Z'],
  ['Sunday, 21-Nov-76 08:49:37 GMT', '1976-11-21T08:49:37.000Z'],
  ['Sunday, 21-Nov-49 08:49:37 GMT', '2049-11-21T08:49:37.000Z'],
  ['Sunday, 21-Nov-77 08:49:37 GMT', '1977-11-21T08:49:37.000Z'],
])('parses %s as %s', (value, expected) => {
  expect(new Date(parseHttpDate(value) ?? Number.NaN).toISOString()).toBe(expected);
});

test.each([
  '',
  'soon',
  '-1',
  '1.5',
  '2026-11-21',
  'Sun, 06 Foo 1994 08:49:37 GMT',
  'Sun, 06 Nov 1994 25:49:37 GMT',
  'xSun, 06 Nov 1994 08:49:37 GMT',
  'Sun, 06 Nov 1994 08:49:37 GMTx',
  'Sun, 06 Nov 1994 08:49:37 CET',
  'Sun, 06 Nov 1994 8:49:37 GMT',
  'Sun, 06 Nov 1994 08:49 GMT',
  '06 Nov 1994 08:49:37 GMT',
])('rejects %j', (value) => {
  expect(parseHttpDate(value)).toBeNull();
});

test('parses a date in UTC, whatever the time zone of the process', () => {
  const file = resolve(import.meta.dirname, '../../platform/egress/http-date.ts');
  const script = `import { parseHttpDate } from ${JSON.stringify(file)};
    console.log(new Date(parseHttpDate('Sun Nov  6 08:49:37 1994')).toISOString());`;
  const env = { ...process.env, TZ: 'Asia/Kathmandu' };
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
    env,
    encoding: 'utf8',
  });
  expect(output.trim()).toBe('1994-11-06T08:49:37.000Z');
});
