import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { createSigner } from '../../platform/crypto.ts';
import { createCursors } from '../../platform/cursor.ts';
import { AppError } from '../../platform/errors.ts';

const key = (byte: number) => Buffer.alloc(32, byte).toString('base64');
const cursors = createCursors(key(1));

test('decodes a cursor to its values', () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 3 }),
      (list, sortKey) => {
        expect(cursors.decode(list, cursors.encode(list, sortKey))).toEqual(sortKey);
      },
    ),
  );
});

test('accepts a cursor only for its list and its signing key', () => {
  const cursor = cursors.encode('inboxes', ['inb_1']);
  for (const wrong of [
    () => cursors.decode('messages', cursor),
    () => createCursors(key(2)).decode('inboxes', cursor),
  ])
    expect(wrong).toThrow(AppError);
});

test('rejects a cursor with any changed bit', () => {
  const bytes = Buffer.from(cursors.encode('list', ['a', 'b']), 'base64url');
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const changed = Buffer.from(bytes);
    changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(() => cursors.decode('list', changed.toString('base64url'))).toThrow(AppError);
  }
});

test('rejects everything that is not a cursor', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(() => cursors.decode('list', text)).toThrow(expect.objectContaining({ code: 'invalid_cursor' }));
    }),
  );
});

test('accepts one spelling of a cursor', () => {
  const cursor = cursors.encode('list', ['a']);
  const padding = '='.repeat((4 - (cursor.length % 4)) % 4);
  for (const other of [
    `${cursor}=`,
    `${cursor}${padding}=`,
    ` ${cursor}`,
    `${cursor.slice(0, 4)}\n${cursor.slice(4)}`,
  ])
    expect(() => cursors.decode('list', other)).toThrow(
      expect.objectContaining({
        code: 'invalid_cursor',
        errors: [expect.objectContaining({ path: '/query/cursor' })],
      }),
    );
});

test('accepts only what was signed for cursors', () => {
  const body = Buffer.from('["a"]');
  const signedFor = (purpose: string) =>
    Buffer.concat([
      createSigner(key(1), purpose, 12).sign(Buffer.concat([Buffer.from('list\n'), body])),
      body,
    ]);
  expect(cursors.decode('list', signedFor('cursor').toString('base64url'))).toEqual(['a']);
  expect(() => cursors.decode('list', signedFor('return-path').toString('base64url'))).toThrow(AppError);
});
