import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Signer } from '../../../platform/crypto.ts';
import { dbOf } from '../../../platform/database/bridge.ts';
import type { Database, Transaction } from '../../../platform/database/database.ts';
import { AppError, invalid } from '../../../platform/errors.ts';
import { newId } from '../../../platform/ids.ts';
import { recordPersonAudit } from '../../audit/record-audit.ts';
import { type Person, requireFreshLogin } from '../../identity/person.ts';
import { requireSafeName } from '../../identity/safe-name.ts';
import type { PersonNotificationService } from '../../notifications/person-notification.service.ts';
import { addSessionFactor } from '../../sessions/session.service.ts';
import {
  type Enrollment,
  findEnrollments,
  informPerson,
  lockPerson,
  requireRoomForFactor,
} from '../mfa-enrollments.ts';
import { replaceRecoveryCodes } from '../recovery-codes.ts';
import { invalidCredentials } from '../start-session.ts';
import { type RelyingParty, requireRelyingParty } from './relying-party.ts';
import {
  createRegistrationOptions,
  type NewCredential,
  type PublicKeyCredentialCreationOptionsJSON,
  type RegistrationResponseJSON,
  readChallenge,
  type StoredCredential,
  verifyRegistration,
} from './webauthn-ceremonies.ts';
import { createWebauthnChallenge, useWebauthnChallenge } from './webauthn-challenges.ts';

export interface PasskeyEnrollmentService {
  /**
   * Options for `navigator.credentials.create()`. Their challenge works once, for this person, for five minutes.
   *
   * @throws AppError `session_expired` if the person signed in more than ten minutes ago; `conflict` beyond ten factors;
   * `feature_disabled` if the service has no host name.
   */
  options(person: Person): Promise<PublicKeyCredentialCreationOptionsJSON>;
  /**
   * Registers the credential, which is a second factor and a passkey. The session has proved the factor then, so one that
   * could only enroll becomes a full one.
   *
   * @returns recovery codes with the person's first factor, otherwise null.
   * @throws AppError as above; `validation_error` for a wrong response; `already_exists` for a registered credential.
   */
  register(
    person: Person,
    input: { response: RegistrationResponseJSON; name?: string },
  ): Promise<{ enrollment: Enrollment; recoveryCodes: string[] | null }>;
  /** RP IDs of stored credentials that do not work any more, because the service has another host name. At most ten. */
  findOtherRpIds(): Promise<string[]>;
}

export interface PasskeyEnrollmentOptions {
  database: Database;
  notifications: PersonNotificationService;
  recoverySigner: Signer;
  relyingParty: RelyingParty | null;
}

const DEFAULT_NAME = 'Passkey';

export function createPasskeyEnrollmentService(options: PasskeyEnrollmentOptions): PasskeyEnrollmentService {
  const { database, notifications, recoverySigner, relyingParty } = options;
  return {
    options(person) {
      const party = requireRelyingParty(relyingParty);
      requireFreshLogin(person);
      return database.peopleTransaction(async ({ em }) => {
        requireRoomForFactor(await findEnrollments(em, person.userId));
        const [user] = await em.execute<{ handle: Buffer; email: string; name: string | null }[]>(sql`
          select webauthn_handle as handle, email, name from users where id = ${person.userId}`);
        if (!user) throw invalidCredentials();
        const challenge = await createWebauthnChallenge(em, { purpose: 'enroll', userId: person.userId });
        const registered = await findCredentials(em, person.userId);
        return createRegistrationOptions(party, { challenge, user, registered });
      });
    },

    async register(person, { response, name: requestedName }) {
      const party = requireRelyingParty(relyingParty);
      requireFreshLogin(person);
      const name = requestedName === undefined ? DEFAULT_NAME : requireSafeName(requestedName, '/body/name');
      return database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        const challenge = readChallenge(response);
        const isIssued =
          challenge !== undefined &&
          (await useWebauthnChallenge(em, challenge, { purpose: 'enroll', userId: person.userId }));
        const credential = isIssued ? await verifyRegistration(party, challenge, response) : undefined;
        if (!credential) throw wrongRegistration();
        await lockPerson(em, person.userId);
        const earlier = await findEnrollments(em, person.userId);
        requireRoomForFactor(earlier);
        const id = await insertCredential(transaction, { person, name, credential, rpId: party.id });
        await addSessionFactor(dbOf(em), person.sessionId, 'webauthn');
        await recordPersonAudit(em, person, { action: 'user.mfa_added', details: { type: 'webauthn' } });
        await informPerson(transaction, notifications, person, 'mfa-added', name);
        const enrollment = (await findEnrollments(em, person.userId)).find((found) => found.id === id);
        if (!enrollment) throw wrongRegistration();
        const recoveryCodes =
          earlier.length === 0 ? await replaceRecoveryCodes(em, recoverySigner, person.userId) : null;
        return { enrollment, recoveryCodes };
      });
    },

    findOtherRpIds: () =>
      database.peopleTransaction(async ({ em }) => {
        const rows = await em.execute<{ rpId: string }[]>(sql`
          select distinct rp_id as "rpId" from mfa_enrollments
          where rp_id <> ${relyingParty?.id ?? ''} order by rp_id limit 10`);
        return rows.map(({ rpId }) => rpId);
      }),
  };
}

export function findCredentials(em: EntityManager, userId: string): Promise<StoredCredential[]> {
  return em.execute<StoredCredential[]>(sql`
    select credential_id as "credentialId", transports from mfa_enrollments
    where user_id = ${userId} and type = 'webauthn' and confirmed_at is not null order by id`);
}

/** @throws AppError `already_exists`, also if another person has the credential. */
async function insertCredential(
  { em }: Transaction,
  {
    person,
    name,
    credential,
    rpId,
  }: { person: Person; name: string; credential: NewCredential; rpId: string },
): Promise<string> {
  const id = newId('mfaEnrollment');
  const inserted = await em.execute<object[]>(sql`
    insert into mfa_enrollments (id, user_id, type, name, credential_id, public_key, signature_counter, transports, rp_id,
      confirmed_at, created_at)
    values (${id}, ${person.userId}, 'webauthn', ${name}, ${credential.credentialId}, ${credential.publicKey},
      ${credential.counter}, ${`{${credential.transports.join(',')}}`}::text[], ${rpId}, now(), now())
    on conflict (credential_id) do nothing returning id`);
  if (inserted.length > 0) return id;
  throw new AppError('already_exists', {
    detail: 'This credential is registered already.',
    fix: 'Use it to sign in, or register another authenticator.',
    commitsTransaction: true,
  });
}

/** The challenge stays used. */
function wrongRegistration(): AppError {
  const { detail, fix, errors } = invalid(
    '/body/response',
    'is not a valid response to options of yours: they work once and for five minutes, on pages of this service only',
    'Request new options, and register with what the browser returns for them.',
  );
  return new AppError('validation_error', {
    detail,
    fix,
    commitsTransaction: true,
    ...(errors ? { errors } : {}),
  });
}
