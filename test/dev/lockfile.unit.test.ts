import { expect, test } from '@jest/globals';
import { missingPackages, readLockfile } from '../../dev/complete-lockfile.ts';

test('the lock file has the optional packages of every system (npx node dev/complete-lockfile.ts adds them)', () => {
  expect(Object.keys(missingPackages(readLockfile()))).toEqual([]);
});

test('finds packages locked next to their dependent or above, and derives the systems of missing ones from their names', () => {
  const wanted = { optionalDependencies: { 'x-linux-x64-musl': '1.0.0', 'x-darwin-arm64': '1.0.0' } };
  const packages = {
    'node_modules/a': { version: '2.0.0', dev: true, ...wanted },
    'node_modules/a/node_modules/x-darwin-arm64': { version: '1.0.0' },
  };
  expect(missingPackages({ packages })).toEqual({
    'node_modules/x-linux-x64-musl': {
      version: '1.0.0',
      dev: true,
      optional: true,
      os: ['linux'],
      cpu: ['x64'],
      libc: ['musl'],
    },
  });
});
