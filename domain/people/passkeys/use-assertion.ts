import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../../platform/database/database.ts';
import { recordPersonAudit } from '../../audit/record-audit.ts';
import type { PersonNotificationService } from '../../notifications/person-notification.service.ts';
import type { Client } from '../client.ts';
import { informPerson } from '../mfa-enrollments.ts';
import type { RelyingParty } from './relying-party.ts';
import { type AuthenticationResponseJSON, readChallenge, verifyAssertion } from './webauthn-ceremonies.ts';
import { useWebauthnChallenge, type WebauthnOccasion } from './webauthn-challenges.ts';

interface CredentialRow {
  id: string;
  userId: string;
  userHandle: Buffer;
  name: string;
  publicKey: Buffer;
}

/**
 * Checks an authenticator's response and uses its challenge up. Runs in the caller's transaction, which has to commit in
 * either case.
 *
 * @param occasion what the challenge must have been issued for; a second factor must be a credential of its person.
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
  const { em } = transaction;
  const challenge = readChallenge(response);
  if (challenge === undefined || !(await useWebauthnChallenge(em, challenge, occasion))) return undefined;
  const credential = await findCredential(em, relyingParty, response.id);
  if (!credential || !isOwner(credential, occasion, response.response.userHandle)) return undefined;
  const counter = await verifyAssertion(relyingParty, challenge, response, credential.publicKey);
  if (counter === undefined) return undefined;
  const { id, userId, name } = credential;
  if (await advanceCounter(em, id, counter)) return { userId };
  const person = { userId, ip: client.ip, requestId: client.requestId };
  await recordPersonAudit(em, person, {
    action: 'user.passkey_refused',
    details: { enrollment_id: id, reason: 'counter_went_back' },
  });
  await informPerson(transaction, notifications, person, 'passkey-copied', name);
  return undefined;
}

/** Also of a person who has deleted their account: the second factor of a recovery may be a passkey. */
async function findCredential(
  em: EntityManager,
  { id: rpId }: RelyingParty,
  credentialId: string,
): Promise<CredentialRow | undefined> {
  const [row] = await em.execute<CredentialRow[]>(sql`
    select e.id, e.user_id as "userId", u.webauthn_handle as "userHandle", e.name, e.public_key as "publicKey"
    from mfa_enrollments e join users u on u.id = e.user_id
    where e.credential_id = ${Buffer.from(credentialId, 'base64url')} and e.rp_id = ${rpId}
      and e.confirmed_at is not null and u.status = 'active'`);
  return row;
}

/**
 * The authenticator names the account that the credential was created for, always without a list of allowed credentials
 * (WebAuthn section 7.2, step 6). The library does not compare it.
 */
function isOwner(
  { userId, userHandle }: CredentialRow,
  occasion: WebauthnOccasion,
  claimedHandle: string | null | undefined,
): boolean {
  if (occasion.purpose !== 'sign_in') {
    if (occasion.userId !== userId) return false;
    if (claimedHandle === undefined || claimedHandle === null) return true;
  }
  return userHandle.equals(Buffer.from(claimedHandle ?? '', 'base64url'));
}

/**
 * A counter that does not grow means that two authenticators have the same key (WebAuthn section 6.1.1). Those without a
 * counter always send zero.
 */
async function advanceCounter(em: EntityManager, enrollmentId: string, counter: number): Promise<boolean> {
  const advanced = await em.execute<object[]>(sql`
    update mfa_enrollments set signature_counter = ${counter}, last_used_at = now()
    where id = ${enrollmentId}
      and (signature_counter < ${counter} or (signature_counter = 0 and ${counter} = 0)) returning id`);
  return advanced.length > 0;
}
