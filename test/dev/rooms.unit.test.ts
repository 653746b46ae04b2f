import { expect, test } from '@jest/globals';
import { updateContributing } from '../../dev/rooms.ts';

test('CONTRIBUTING.md has the rooms of domain/ and their floors (npx node dev/rooms.ts updates it)', () => {
  const { text, updated } = updateContributing();
  expect(text).toBe(updated);
});
