import { type NotNull, sql } from 'kysely';
import type { Transaction } from '../../../platform/database/database.ts';
import type { Db } from '../../../platform/database/tables.ts';
import { recordPersonAudit } from '../../audit/record-audit.ts';
import type { Client } from '../../identity/person.ts';
import type { PersonNotificationService } from '../../notifications/person-notification.service.ts';
import { notifyOfFactorChange } from '../mfa-enrollments.ts';
import {
  type AuthenticationResponseJSON,
  type RelyingParty,
  readChallenge,
  verifyAssertion,
} from './webauthn-ceremonies.ts';
import { useWebauthnChallenge, type WebauthnOccasion } from './webauthn-challenges.ts';

type Credential = NonNullable<Awaited<ReturnType<typeof findCredential>>>;

/**
 * Checks an authenticator's response and uses up its challenge. Runs in the caller's transaction, which must commit in
 * either case.
 *
 * @param occasion the purpose for which the challenge must have been issued; a second factor must be a credential of its
 * person.
 * @returns the person; undefined if anything is wrong.
 */
export async function useAssertion(
  transaction: Transaction,
  { relyingParty, notifications }: { relyingParty: RelyingParty; notifications: PersonNotificationService },
  {
    occasion,
    response,
    client,
  }: { occasion: WebauthnOccasion; response: AuthenticationResponseJSON; client: Client },
): Promise<{ userId: string } | undefined> {
  const { db } = transaction;
  const challenge = readChallenge(response);
  if (challenge === undefined || !(await useWebauthnChallenge(db, challenge, occasion))) return undefined;
  const credential = await findCredential(db, relyingParty, response.id);
  if (!credential || !isOwner(credential, occasion, response.response.userHandle)) return undefined;
  const counter = await verifyAssertion(relyingParty, challenge, response, credential.publicKey);
  if (counter === undefined) return undefined;
  const { id, userId, name } = credential;
  if (await advanceCounter(db, id, counter)) return { userId };
  const person = { userId, ip: client.ip, requestId: client.requestId };
  await recordPersonAudit(db, person, {
    action: 'user.passkey_refused',
    details: { enrollment_id: id, reason: 'counter_went_back' },
  });
  await notifyOfFactorChange(transaction, notifications, person, 'passkey-copied', name);
  return undefined;
}

/** Includes people who have deleted their account, because the second factor of a recovery may be a passkey. */
function findCredential(db: Db, { id: rpId }: RelyingParty, credentialId: string) {
  return db
    .selectFrom('mfa_enrollments')
    .innerJoin('users', 'users.id', 'mfa_enrollments.user_id')
    .select([
      'mfa_enrollments.id',
      'mfa_enrollments.user_id as userId',
      'users.webauthn_handle as userHandle',
      'mfa_enrollments.name',
      'mfa_enrollments.public_key as publicKey',
    ])
    .where('mfa_enrollments.credential_id', '=', Buffer.from(credentialId, 'base64url'))
    .where('mfa_enrollments.public_key', 'is not', null)
    .where('mfa_enrollments.rp_id', '=', rpId)
    .where('mfa_enrollments.confirmed_at', 'is not', null)
    .where('users.status', '=', 'active')
    .$narrowType<{ publicKey: NotNull }>()
    .executeTakeFirst();
}

/**
 * The authenticator names the account that the credential was created for. If the request lists no credentials, it must do
 * so (WebAuthn section 7.2, step 6). The library does not compare the account.
 */
function isOwner(
  { userId, userHandle }: Credential,
  occasion: WebauthnOccasion,
  claimedHandle: string | null | undefined,
): boolean {
  if (occasion.purpose !== 'sign_in') {
    if (occasion.userId !== userId) return false;
    if (claimedHandle === undefined || claimedHandle === null) return true;
  }
  return Buffer.from(claimedHandle ?? '', 'base64url').equals(userHandle);
}

/**
 * A counter that does not grow means that two authenticators have the same key (WebAuthn section 6.1.1). Authenticators
 * without a counter always send zero.
 */
async function advanceCounter(db: Db, enrollmentId: string, counter: number): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('mfa_enrollments')
    .set({ signature_counter: counter, last_used_at: sql<Date>`now()` })
    .where('id', '=', enrollmentId)
    .where((eb) => {
      const grows = eb('signature_counter', '<', counter);
      return counter === 0 ? eb.or([grows, eb('signature_counter', '=', 0)]) : grows;
    })
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
