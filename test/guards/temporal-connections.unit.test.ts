import { globSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';

test('every client of Temporal survives a call that is retried after its connection was closed', () => {
  const connects = globSync('{api,dev,platform,test,workers}/**/*.ts').flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/(?<!Native)Connection\.(?:connect|lazy)\([\s\S]*?\);/g)].map(
      ([call]) => ({ file, isSafe: call.includes('CLIENT_INTERCEPTORS') }),
    ),
  );
  expect(connects.length).toBeGreaterThanOrEqual(3);
  expect(connects.filter(({ isSafe }) => !isSafe)).toEqual([]);
});
