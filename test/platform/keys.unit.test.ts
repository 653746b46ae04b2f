import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { createUnsubscribeLinks } from '../../domain/deliverability/unsubscribe-links.ts';
import {
  createOneTimeToken,
  createSecretBox,
  createSigner,
  hashOneTimeToken,
  listKeyIds,
} from '../../platform/crypto.ts';
import { createCursors } from '../../platform/cursor.ts';
import { newId } from '../../platform/ids.ts';
import { createReturnPaths } from '../../platform/return-path.ts';

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const OLD = key(1);
const NEW = key(2);
const BOTH = `${NEW}, ${OLD}`;

describe('ENCRYPTION_KEY with several keys', () => {
  test('encrypts with the first key and decrypts with all', () => {
    const sealedBefore = createSecretBox(OLD).seal('secret', 'row');
    const rotating = createSecretBox(BOTH);
    expect(rotating.open(sealedBefore, 'row')).toBe('secret');
    const sealedNow = rotating.seal('secret', 'row');
    expect(createSecretBox(NEW).open(sealedNow, 'row')).toBe('secret');
    expect(sealedNow.subarray(0, rotating.currentPrefix.length)).toEqual(rotating.currentPrefix);
    expect(sealedBefore.subarray(0, rotating.currentPrefix.length)).not.toEqual(rotating.currentPrefix);
  });

  test('names the key of a value that it does not list', () => {
    const [old] = listKeyIds(OLD, 'ENCRYPTION_KEY');
    const [current] = listKeyIds(NEW, 'ENCRYPTION_KEY');
    expect(() => createSecretBox(NEW).open(createSecretBox(OLD).seal('secret', 'row'), 'row')).toThrow(
      `ENCRYPTION_KEY does not list the key ${old}, with which a stored value is encrypted. It lists ${current}.`,
    );
  });

  test('opens a value only in its own context and only unaltered', () => {
    const box = createSecretBox(NEW);
    const sealed = box.seal('secret', 'row');
    expect(() => box.open(sealed, 'another row')).toThrow();
    sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1;
    expect(() => box.open(sealed, 'row')).toThrow();
  });

  test('encrypts text of any characters, differently each time', () => {
    const box = createSecretBox(NEW);
    const sealed = box.seal('Zo\u00eb \u{1f984}', 'row');
    expect(box.open(sealed, 'row')).toBe('Zo\u00eb \u{1f984}');
    expect(box.seal('Zo\u00eb \u{1f984}', 'row')).not.toEqual(sealed);
    expect(box.open(box.seal('', 'row'), 'row')).toBe('');
  });

  test('stores version and key id first, so that values can be found by their key', () => {
    expect(listKeyIds(`${OLD},${NEW}`, 'ENCRYPTION_KEY')).toEqual(['cabf5820', expect.any(String)]);
    expect(createSecretBox(OLD).seal('secret', 'row').toString('hex')).toMatch(/^02cabf5820/);
  });

  test('does not open a value of a later version', () => {
    const sealed = createSecretBox(NEW).seal('secret', 'row');
    sealed[0] = 3;
    expect(() => createSecretBox(NEW).open(sealed, 'row')).toThrow('unknown version');
  });

  test('opens values of the first format, which had no key id', () => {
    const nonce = randomBytes(12);
    const cipher = createCipheriv('aes-256-gcm', Buffer.alloc(32, 1), nonce).setAAD(Buffer.from('row'));
    const body = Buffer.concat([cipher.update('secret'), cipher.final()]);
    const sealed = Buffer.concat([Buffer.of(1), nonce, cipher.getAuthTag(), body]);
    expect(createSecretBox(BOTH).open(sealed, 'row')).toBe('secret');
    expect(() => createSecretBox(NEW).open(sealed, 'row')).toThrow(/authenticate/);
  });

  test.each(['', 'short', `${NEW},`, `${NEW},short`])('rejects %j', (keys) => {
    expect(() => createSecretBox(keys)).toThrow('ENCRYPTION_KEY must be 32 bytes in base64');
  });
});

describe('SIGNING_KEY with several keys', () => {
  test('signs with the first key, and signatures of all are valid', () => {
    const signed = createSigner(OLD, 'purpose').sign('value');
    const rotating = createSigner(BOTH, 'purpose');
    expect(rotating.verify('value', signed)).toBe(true);
    expect(rotating.signatures('value')).toContainEqual(signed);
    expect(rotating.sign('value')).toEqual(createSigner(NEW, 'purpose').sign('value'));
    expect(createSigner(NEW, 'purpose').verify('value', signed)).toBe(false);
    expect(createSigner(BOTH, 'another purpose').verify('value', signed)).toBe(false);
  });

  test('cursors, return paths and unsubscribe links of an older key remain valid', () => {
    const cursor = createCursors(OLD).encode('inboxes', ['inb_1']);
    expect(createCursors(BOTH).decode('inboxes', cursor)).toEqual(['inb_1']);

    const paths = (signingKey: string) => createReturnPaths({ signingKey, domain: 'bounces.test' });
    const messageId = newId('message');
    const sender = paths(OLD).create(messageId, 3);
    expect(paths(BOTH).parse(sender)).toEqual({ messageId, position: 3 });
    expect(paths(NEW).parse(sender)).toBeNull();

    const links = (signingKey: string) =>
      createUnsubscribeLinks({ signingKey, publicUrl: 'https://mail.test' });
    const target = {
      organizationId: newId('organization'),
      inboxId: newId('inbox'),
      email: 'ada@example.com',
    };
    const link = links(OLD).create(target as never);
    const token = link.split('/').at(-1) ?? '';
    expect(links(BOTH).parse(token)).not.toBeNull();
    expect(links(NEW).parse(token)).toBeNull();
  });
});

test('a token that works once has 256 bits, and only its hash is stored', () => {
  const [one, other] = [createOneTimeToken(), createOneTimeToken()];
  expect(one.token).toMatch(/^[0-9A-Za-z]{43}$/);
  expect(one.token).not.toBe(other.token);
  expect(one.hash).toEqual(hashOneTimeToken(one.token));
  expect(one.hash).toEqual(createHash('sha256').update(one.token).digest());
});
