import { describe, expect, test } from '@jest/globals';
import { createUnsubscribeLinks } from '../../domain/deliverability/unsubscribe-links.ts';
import { createSigner } from '../../platform/crypto.ts';
import { newId } from '../../platform/ids.ts';

const signingKey = Buffer.alloc(32, 7).toString('base64');
const links = createUnsubscribeLinks({ signingKey, publicUrl: 'https://mail.test' });
const target = { organizationId: newId('organization'), inboxId: newId('inbox'), email: 'Zoë@example.com' };
const tokenOf = (link: string) => link.slice(link.lastIndexOf('/') + 1);

test('a link names who unsubscribes from which inbox', () => {
  expect(links.parse(tokenOf(links.create(target)))).toEqual(target);
});

test.each(['https://mail.test', 'https://mail.test/', 'https://mail.test//'])(
  'a link begins with PUBLIC_URL, here %s',
  (publicUrl) => {
    const link = createUnsubscribeLinks({ signingKey, publicUrl }).create(target);
    expect(link).toMatch(/^https:\/\/mail\.test\/u\/[\w-]+$/);
  },
);

describe('no link is', () => {
  /** A token with a valid signature over any bytes. */
  const signed = (bytes: Buffer, purpose = 'unsubscribe') =>
    Buffer.concat([createSigner(signingKey, purpose, 16).sign(bytes), bytes]).toString('base64url');
  const bytes = Buffer.from(tokenOf(links.create(target)), 'base64url').subarray(16);

  test.each([
    ['an empty token', ''],
    ['a token without a recipient', signed(bytes.subarray(0, 32))],
    ['a token without ids', signed(bytes.subarray(0, 8))],
    [
      'a token with a changed signature',
      tokenOf(links.create(target)).replace(/^./, (at) => (at === 'A' ? 'B' : 'A')),
    ],
    ['a signature for another purpose', signed(bytes, 'cursor')],
  ])('%s', (_name, token) => {
    expect(links.parse(token)).toBeNull();
  });

  test('a token of another recipient with this signature', () => {
    const changed = Buffer.from(tokenOf(links.create(target)), 'base64url');
    changed.writeUInt8(changed.readUInt8(48) ^ 1, 48);
    expect(links.parse(changed.toString('base64url'))).toBeNull();
  });

  test('anything but the signed bytes', () => expect(links.parse(signed(bytes))).toEqual(target));
});
