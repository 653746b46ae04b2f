import { createSigner } from './crypto.ts';
import { AppError } from './errors.ts';
import type { CursorKey } from './pagination.ts';

/** Cursors as clients see them: opaque, signed, and good only for the list they came from. */
export interface Cursors {
  /** @param list names the list: operation, tenant, filters and order. */
  encode(list: string, key: CursorKey): string;
  /** @throws AppError `invalid_cursor` for anything {@link encode} did not make for this very list. */
  decode(list: string, cursor: string): CursorKey;
}

/** Enough against guessing: each guess costs a call, and a right one shows nothing but the caller's own rows. */
const SIGNATURE_BYTES = 12;

/** @param signingKey 32 bytes, base64 (`SIGNING_KEY`). */
export function createCursors(signingKey: string): Cursors {
  const signer = createSigner(signingKey, 'cursor', SIGNATURE_BYTES);
  const signed = (list: string, body: Buffer) => Buffer.concat([Buffer.from(`${list}\n`), body]);
  return {
    encode(list, key) {
      const body = Buffer.from(JSON.stringify(key));
      return Buffer.concat([signer.sign(signed(list, body)), body]).toString('base64url');
    },
    decode(list, cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      const body = bytes.subarray(SIGNATURE_BYTES);
      // Base64 decoding skips what it does not know; only the canonical spelling is ours.
      const ours =
        bytes.toString('base64url') === cursor &&
        signer.verify(signed(list, body), bytes.subarray(0, SIGNATURE_BYTES));
      if (!ours) throw invalidCursor();
      return JSON.parse(body.toString('utf8')) as CursorKey;
    },
  };
}

function invalidCursor(): AppError {
  return new AppError('invalid_cursor', {
    detail: 'The cursor was not made by this list with these filters and this order.',
    fix: 'Start again without a cursor, and pass next_cursor on unchanged together with the same filters.',
    errors: [{ path: '/query/cursor', message: 'is not a cursor of this list' }],
  });
}
