import { randomInt } from 'node:crypto';
import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Signer } from '../../platform/crypto.ts';
import { joinSql } from '../../platform/database/sql.ts';

const CODE_COUNT = 10;
/** Without letters that look alike. 16 characters have 79.3 bits. */
const ALPHABET = 'abcdefghjkmnpqrstvwxyz0123456789';
const CODE_LENGTH = 17;
const GROUP_LENGTH = 6;

/** Replaces a person's recovery codes. Returns the new ones, which are not stored. */
export async function replaceRecoveryCodes(
  em: EntityManager,
  signer: Signer,
  userId: string,
): Promise<string[]> {
  const codes = Array.from({ length: CODE_COUNT }, createCode);
  await deleteRecoveryCodes(em, userId);
  const rows = codes.map((code) => sql`(${userId}, ${signer.sign(signedText(userId, code))}, now())`);
  await em.execute(sql`
    insert into mfa_recovery_codes (user_id, code_hash, created_at) values ${joinSql(rows, ', ')}`);
  return codes;
}

export async function deleteRecoveryCodes(em: EntityManager, userId: string): Promise<void> {
  await em.execute(sql`delete from mfa_recovery_codes where user_id = ${userId}`);
}

/** Uses a code up: of two concurrent uses one succeeds. Case, spaces and hyphens do not matter. */
export async function useRecoveryCode(
  em: EntityManager,
  signer: Signer,
  { userId, code }: { userId: string; code: string },
): Promise<boolean> {
  // A code that was created under an older SIGNING_KEY remains valid while that key is listed.
  const hashes = signer.signatures(signedText(userId, code));
  const used = await em.execute<object[]>(sql`
    update mfa_recovery_codes set used_at = now()
    where user_id = ${userId} and code_hash in (${hashes}) and used_at is null returning user_id`);
  return used.length > 0;
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
