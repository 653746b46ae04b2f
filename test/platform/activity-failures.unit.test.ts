import { expect, test } from '@jest/globals';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { MAX_DEFECT_ATTEMPTS, withApplicationFailures } from '../../activities/failures.ts';
import { UnsendableMessageError } from '../../domain/mime/build-mime.ts';
import { AppError } from '../../platform/errors.ts';
import { StorageError } from '../../platform/storage-error.ts';

async function isRetried(error: unknown, attempt: number): Promise<boolean> {
  const environment = new MockActivityEnvironment({ attempt }, { logger: new DefaultLogger('ERROR') });
  const failure = await environment
    .run(() => withApplicationFailures(() => Promise.reject(error)))
    .catch((reason: unknown) => reason);
  expect(failure).toBeInstanceOf(ApplicationFailure);
  return !(failure as ApplicationFailure).nonRetryable;
}

const withCode = (code: string | number) => Object.assign(new Error('failed'), { code });

test.each<[string, unknown]>([
  ['a lost database connection', withCode('08006')],
  ['a deadlock', withCode('40P01')],
  ['unavailable storage', new StorageError('unavailable', 'Storage could not read x')],
  ['an unreachable database', withCode('ECONNREFUSED')],
  ['a failed name resolution', withCode('EAI_AGAIN')],
  ['an unavailable Temporal server', withCode(14)],
  ['a timeout', Object.assign(new Error('timeout'), { name: 'TimeoutError' })],
  ['an error caused by the network', new Error('fetch failed', { cause: withCode('UND_ERR_SOCKET') })],
  ['an unavailable dependency', new AppError('unavailable', { detail: 'x', fix: 'y' })],
])('retries %s as long as it lasts', async (_name, error) => {
  expect(await isRetried(error, 10_000)).toBe(true);
});

test.each<[string, unknown]>([
  ['a TypeError', new TypeError('x is not a function')],
  ['a value that PostgreSQL rejects', withCode('22001')],
  ['a missing object', new StorageError('missing', 'Storage could not read x (404)')],
  ['something that is not an error', 'failed'],
])('stops retrying %s after a stated number of attempts', async (_name, error) => {
  expect(await isRetried(error, MAX_DEFECT_ATTEMPTS - 1)).toBe(true);
  expect(await isRetried(error, MAX_DEFECT_ATTEMPTS)).toBe(false);
});

test.each<[string, unknown]>([
  ['a refusal of the service', new AppError('not_found', { detail: 'x', fix: 'y' })],
  ['a message that cannot be built', new UnsendableMessageError('A file is missing.')],
])('never retries %s', async (_name, error) => {
  expect(await isRetried(error, 1)).toBe(false);
});
