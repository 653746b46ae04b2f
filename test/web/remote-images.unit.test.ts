import { expect, test } from '@jest/globals';
import type { Scope } from '../../domain/identity/scope.ts';
import { createRemoteImages } from '../../web/messages/remote-images.ts';

const images = createRemoteImages(Buffer.alloc(32, 7).toString('base64'));
const scopeOf = (id: string, more: object = {}) => ({ actor: { kind: 'user', id }, ...more }) as Scope;
const ada = scopeOf('usr_ada');
const NOW = 1_000_000;

test('images are allowed to one person, for one message, for a minute, and never in a support session', () => {
  const permission = images.allow(ada, 'msg_1', NOW);
  expect(images.areAllowed(ada, 'msg_1', permission, NOW + 59_999)).toBe(true);
  expect(images.areAllowed(ada, 'msg_1', permission, NOW + 60_000)).toBe(false);
  expect(images.areAllowed(ada, 'msg_2', permission, NOW)).toBe(false);
  expect(images.areAllowed(scopeOf('usr_bob'), 'msg_1', permission, NOW)).toBe(false);
  const support = scopeOf('usr_ada', { impersonation: {} });
  expect(images.areAllowed(support, 'msg_1', permission, NOW)).toBe(false);
});

test('a permission that was not given, or was prolonged, allows nothing', () => {
  const [, signature] = images.allow(ada, 'msg_1', NOW).split('.');
  for (const forged of [
    '',
    '1',
    `${NOW * 9}.${signature}`,
    `${NOW * 9}.`,
    `.${signature}`,
    `${NOW * 9}.${'A'.repeat(64)}`,
  ])
    expect([forged, images.areAllowed(ada, 'msg_1', forged, NOW)]).toEqual([forged, false]);
});
