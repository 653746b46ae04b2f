import { expect, test } from '@jest/globals';
import { toDatabaseError } from '../../platform/database/database-errors.ts';

const databaseError = (code: string) => Object.assign(new Error('failed'), { code });

test.each([
  ['a server that shuts down', '57P01'],
  ['a server that starts', '57P03'],
  ['a lost connection', '08006'],
  ['a refused connection', 'ECONNREFUSED'],
  ['a name that does not resolve at the moment', 'EAI_AGAIN'],
  ['a network that is unreachable', 'ENETUNREACH'],
  ['no free connection', '53300'],
  ['a full disk', '53100'],
  ['no memory', '53200'],
  ['a failing disk', '58030'],
  ['a standby that only reads', '25006'],
])('%s is an unavailable database', (_name, code) => {
  expect(toDatabaseError(databaseError(code))).toMatchObject({
    code: 'unavailable',
    headers: { 'retry-after': '5' },
  });
});

test.each([
  ['a statement that is wrong', '42601'],
  ['a missing right', '42501'],
  ['a NUL in a parameter', '08P01'],
])('%s is not', (_name, code) => {
  expect(toDatabaseError(databaseError(code))?.code).not.toBe('unavailable');
});

test.each([
  'Connection terminated unexpectedly',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
])('the driver says without a code that the database is unavailable: %s', (message) => {
  expect(toDatabaseError(new Error(message))).toMatchObject({ code: 'unavailable' });
});
