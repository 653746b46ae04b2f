import { readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';

/** Files that call a function, without the one that declares it. */
const callersOf = (name: string): string[] =>
  listSourceFiles(['api', 'web', 'activities', 'domain', 'workers']).filter((file) =>
    new RegExp(`(?<!function )\\b${name}\\(`).test(readFileSync(file, 'utf8')),
  );

// `applyTier` demands a function that writes the entry; what it calls does not.
test('a tier changes only with an entry in the audit log of the organization', () => {
  expect(callersOf('changeTier')).toEqual([expect.stringMatching(/domain\/administration\/apply-tier\.ts$/)]);
  expect(callersOf('applyTier').length).toBeGreaterThan(2);
});
