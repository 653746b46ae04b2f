import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import { newId } from '../../platform/ids.ts';
import { totpContext } from './mfa.service.ts';
import { createTotpSetup } from './totp.ts';

export interface TotpEnrollment {
  userId: string;
  /** Address of the user, which the app shows. */
  email: string;
  /** Name of the service in the app. */
  issuer: string;
  secretBox: SecretBox;
}

/**
 * Enrolls an authenticator app for a user whom the installation creates, in the caller's transaction. Returns its secret
 * (base32), which is not stored in plain text.
 */
export async function enrollTotp(
  em: EntityManager,
  { userId, email, issuer, secretBox }: TotpEnrollment,
): Promise<string> {
  const { secret } = createTotpSetup({ issuer, label: email });
  const id = newId('mfaEnrollment');
  await em.execute(sql`
    insert into mfa_enrollments (id, user_id, type, name, secret, confirmed_at, created_at)
    values (${id}, ${userId}, 'totp', 'Authenticator app', ${secretBox.seal(secret, totpContext(id))}, now(), now())`);
  return secret;
}
