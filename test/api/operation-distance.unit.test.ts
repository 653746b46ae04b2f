import { expect, test } from '@jest/globals';
import { findNearest, type KnownOperation } from '../../api/plugins/nearest-operation.ts';
import { cpuTimeMs } from '../support/cpu-time.ts';

const operationOf = (method: string, path: string): KnownOperation => ({
  method,
  path: `/api/v1${path}`,
  segments: path.split('/').slice(1),
  config: {},
});

/** As many operations as the API has, with as many words. */
const operations = Array.from({ length: 300 }, (_, index) =>
  operationOf('POST', `/collection-${index % 60}/{id}/operation-${index % 70}/something`),
);

test('a path of long words is compared in little time, because anyone may send it', () => {
  const letters = 'abcdefghijklmnopqrstuvwxyz';
  const segments = Array.from({ length: 10 }, (_, index) => `${letters.slice(index)}${letters}`.slice(0, 32));
  const times = Array.from({ length: 10 }, () =>
    cpuTimeMs(() => findNearest({ method: 'POST', segments }, operations)),
  );
  // Comparing each word with that of each operation took 50 to 150 ms for one path, on a machine three times as fast.
  expect(Math.min(...times)).toBeLessThan(60);
});

test('a segment that says what a method says, counts as the method', () => {
  const known = [operationOf('DELETE', '/messages/{id}'), operationOf('GET', '/messages/{id}')];
  const id = 'msg_01jc2v5x9ke4vbs1ap0qj5ws2f';
  const wanted = { method: 'POST', segments: ['messages', id, 'delete'] };
  expect(findNearest(wanted, known)?.operation).toBe('DELETE /api/v1/messages/{id}');
  expect(findNearest({ method: 'PUT', segments: ['nothing', 'alike'] }, known)).toBeUndefined();
});
