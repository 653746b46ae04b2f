import { createSigner } from './crypto.ts';
import { AppError } from './errors.ts';
import type { CursorKey } from './pagination.ts';

/** Cursors as clients see them: opaque, signed, and valid only for the list that issued them. */
export interface Cursors {
  /** @param list identifies the list: operation, tenant, filters and order. */
  encode(list: string, key: CursorKey): string;
  /** @throws AppError `invalid_cursor` unless {@link encode} created the cursor for the same list. */
  decode(list: string, cursor: string): CursorKey;
}

/** Short, since each guess costs a request and a correct one shows only the caller's own rows. */
const SIGNATURE_BYTES = 12;

/** @param signingKey 32 bytes, base64; may list several, separated by commas (`SIGNING_KEY`). */
export function createCursors(signingKey: string): Cursors {
  const signer = createSigner(signingKey, 'cursor', SIGNATURE_BYTES);
  const signedBytes = (list: string, body: Buffer) => Buffer.concat([Buffer.from(`${list}\n`), body]);
  return {
    encode(list, key) {
      const body = Buffer.from(JSON.stringify(key));
      return Buffer.concat([signer.sign(signedBytes(list, body)), body]).toString('base64url');
    },
    decode(list, cursor) {
      const bytes = Buffer.from(cursor, 'base64url');
      const body = bytes.subarray(SIGNATURE_BYTES);
      // Base64 decoding ignores invalid characters; only the canonical form is accepted.
      const isValid =
        bytes.toString('base64url') === cursor &&
        signer.verify(signedBytes(list, body), bytes.subarray(0, SIGNATURE_BYTES));
      if (!isValid) throw invalidCursor();
      return JSON.parse(body.toString('utf8')) as CursorKey;
    },
  };
}

function invalidCursor(): AppError {
  return new AppError('invalid_cursor', {
    detail: 'The cursor does not belong to this list with these filters and this order.',
    fix: 'Start again without a cursor, and pass next_cursor unchanged together with the same filters.',
    errors: [{ path: '/query/cursor', message: 'is not a cursor of this list' }],
  });
}
