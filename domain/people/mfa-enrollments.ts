import { sql } from 'kysely';
import type { SecretBox } from '../../platform/crypto.ts';
import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Person } from '../identity/person.ts';
import { invalidCredentials } from '../identity/sign-in-errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { deleteRecoveryCodes } from './recovery-codes.ts';
import type { MfaEnrollment } from './sign-in.entity.ts';
import { createTotpSetup, totpContext } from './totp.ts';

export type Enrollment = Pick<MfaEnrollment, 'id' | 'type' | 'name' | 'createdAt' | 'lastUsedAt'>;

const MAX_ENROLLMENTS = 10;

export const ENROLLMENT_COLUMNS = [
  'id',
  'type',
  'name',
  'created_at as createdAt',
  'last_used_at as lastUsedAt',
] as const;

/** Confirmed factors, oldest first. */
export function findEnrollments(db: Db, userId: string): Promise<Enrollment[]> {
  return db
    .selectFrom('mfa_enrollments')
    .select(ENROLLMENT_COLUMNS)
    .where('user_id', '=', userId)
    .where('confirmed_at', 'is not', null)
    .orderBy('id')
    .execute();
}

/** Serializes the changes of one person's factors, so that only one of them adds the first factor or removes the last. */
export async function lockPerson(db: Db, userId: string): Promise<void> {
  await db.selectFrom('users').select('id').where('id', '=', userId).forUpdate().execute();
}

/** Mails the person that their factors changed. */
export async function notifyOfFactorChange(
  transaction: Transaction,
  notifications: PersonNotificationService,
  person: Pick<Person, 'userId' | 'ip'>,
  template: 'mfa-added' | 'mfa-removed' | 'recovery-codes-replaced' | 'passkey-copied',
  name: string,
): Promise<void> {
  const user = await transaction.db
    .selectFrom('users')
    .select('email')
    .where('id', '=', person.userId)
    .executeTakeFirst();
  if (!user) throw invalidCredentials();
  await notifications.notify(transaction, {
    userId: person.userId,
    email: user.email,
    template,
    params: { name, at: formatUtc(new Date()), ip: person.ip },
  });
}

/** @throws AppError `conflict` for a person with the maximum number of factors. */
export function requireFactorBelowLimit(enrollments: readonly Enrollment[]): void {
  if (enrollments.length < MAX_ENROLLMENTS) return;
  throw new AppError('conflict', {
    detail: `You have the maximum of ${MAX_ENROLLMENTS} factors.`,
    fix: 'Remove one first: DELETE /api/v1/auth/mfa/{enrollmentId}.',
  });
}

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

/** Removes every second factor, passkey and recovery code of a person, in the caller's transaction. Returns their number. */
export async function removeFactors(db: Db, userId: string): Promise<number> {
  await deleteRecoveryCodes(db, userId);
  const { numDeletedRows } = await db
    .deleteFrom('mfa_enrollments')
    .where('user_id', '=', userId)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
