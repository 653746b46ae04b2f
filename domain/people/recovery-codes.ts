import { randomInt } from 'node:crypto';
import { sql } from 'kysely';
import type { Signer } from '../../platform/crypto.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db } from '../../platform/database/tables.ts';

const CODE_COUNT = 10;
/** Without letters that look alike. 16 characters have 79.3 bits. */
const ALPHABET = 'abcdefghjkmnpqrstvwxyz0123456789';
const CODE_LENGTH = 17;
const GROUP_LENGTH = 6;

/** Replaces a person's recovery codes. Returns the new ones, which are not stored. */
export async function replaceRecoveryCodes(db: Db, signer: Signer, userId: string): Promise<string[]> {
  const codes = Array.from({ length: CODE_COUNT }, createCode);
  await deleteRecoveryCodes(db, userId);
  await db
    .insertInto('mfa_recovery_codes')
    .values(
      codes.map((code) => ({
        user_id: userId,
        code_hash: signer.sign(signedText(userId, code)),
        used_at: null,
      })),
    )
    .execute();
  return codes;
}

/** Counts the codes that were not used. */
export async function countRecoveryCodes(db: Db, userId: string): Promise<number> {
  const row = await db
    .selectFrom('mfa_recovery_codes')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', '=', userId)
    .where('used_at', 'is', null)
    .executeTakeFirst();
  return row?.count ?? 0;
}

export async function deleteRecoveryCodes(db: Db, userId: string): Promise<void> {
  await db.deleteFrom('mfa_recovery_codes').where('user_id', '=', userId).execute();
}

/** Uses up a code. Of two concurrent uses, one succeeds. Case, spaces and hyphens do not matter. */
export async function useRecoveryCode(
  db: Db,
  signer: Signer,
  { userId, code }: { userId: string; code: string },
): Promise<boolean> {
  // A code that was created under an older SIGNING_KEY remains valid while that key is listed.
  const hashes = signer.signatures(signedText(userId, code));
  const { numUpdatedRows } = await db
    .updateTable('mfa_recovery_codes')
    .set({ used_at: sql<Date>`now()` })
    .where('user_id', '=', userId)
    .where('code_hash', '=', anyOf(hashes))
    .where('used_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}

function createCode(): string {
  const characters = Array.from({ length: CODE_LENGTH }, () =>
    ALPHABET.charAt(randomInt(ALPHABET.length)),
  ).join('');
  return characters.replace(new RegExp(`(.{${GROUP_LENGTH}})(?=.)`, 'g'), '$1-');
}

function signedText(userId: string, code: string): string {
  return `${userId}:${code.toLowerCase().replace(/[\s-]/g, '')}`;
}
