import { sql } from 'kysely';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Db } from '../../platform/database/tables.ts';
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
  db: Db,
  { userId, email, issuer, secretBox }: TotpEnrollment,
): Promise<string> {
  const { secret } = createTotpSetup({ issuer, label: email });
  const id = newId('mfaEnrollment');
  await db
    .insertInto('mfa_enrollments')
    .values({
      id,
      user_id: userId,
      type: 'totp',
      name: 'Authenticator app',
      secret: secretBox.seal(secret, totpContext(id)),
      confirmed_at: sql<Date>`now()`,
    })
    .execute();
  return secret;
}
