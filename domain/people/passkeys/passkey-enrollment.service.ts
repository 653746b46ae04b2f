import { type NotNull, sql } from 'kysely';
import type { Signer } from '../../../platform/crypto.ts';
import type { Database } from '../../../platform/database/database.ts';
import type { Db } from '../../../platform/database/tables.ts';
import { AppError, invalid } from '../../../platform/errors.ts';
import { newId } from '../../../platform/ids.ts';
import { recordPersonAudit } from '../../audit/record-audit.ts';
import { type Person, requireFreshLogin } from '../../identity/person.ts';
import { requireSafeName } from '../../identity/safe-name.ts';
import { invalidCredentials } from '../../identity/sign-in-errors.ts';
import type { PersonNotificationService } from '../../notifications/person-notification.service.ts';
import { addSessionFactor } from '../../sessions/session.service.ts';
import {
  ENROLLMENT_COLUMNS,
  type Enrollment,
  findEnrollments,
  lockPerson,
  notifyOfFactorChange,
  requireFactorBelowLimit,
} from '../mfa-enrollments.ts';
import { replaceRecoveryCodes } from '../recovery-codes.ts';
import {
  createRegistrationOptions,
  type NewCredential,
  type PublicKeyCredentialCreationOptionsJSON,
  type RegistrationResponseJSON,
  type RelyingParty,
  readChallenge,
  requireRelyingParty,
  type StoredCredential,
  verifyRegistration,
} from './webauthn-ceremonies.ts';
import { createWebauthnChallenge, useWebauthnChallenge } from './webauthn-challenges.ts';

export type PasskeyEnrollmentService = ReturnType<typeof createPasskeyEnrollmentService>;

export interface PasskeyEnrollmentOptions {
  database: Database;
  notifications: PersonNotificationService;
  recoverySigner: Signer;
  relyingParty: RelyingParty | null;
}

const DEFAULT_NAME = 'Passkey';

export function createPasskeyEnrollmentService(options: PasskeyEnrollmentOptions) {
  const { database, notifications, recoverySigner, relyingParty } = options;
  return {
    /**
     * Options for `navigator.credentials.create()`. Their challenge works once, for this person, for five minutes.
     *
     * @throws AppError `session_expired` if the person signed in more than ten minutes ago; `conflict` beyond ten factors;
     * `feature_disabled` if the service has no host name.
     */
    options(person: Person): Promise<PublicKeyCredentialCreationOptionsJSON> {
      const party = requireRelyingParty(relyingParty);
      requireFreshLogin(person);
      return database.peopleTransaction(async ({ db }) => {
        requireFactorBelowLimit(await findEnrollments(db, person.userId));
        const user = await db
          .selectFrom('users')
          .select(['webauthn_handle as handle', 'email', 'name'])
          .where('id', '=', person.userId)
          .executeTakeFirst();
        if (!user) throw invalidCredentials();
        const challenge = await createWebauthnChallenge(db, { purpose: 'enroll', userId: person.userId });
        const registered = await findCredentials(db, person.userId);
        return createRegistrationOptions(party, { challenge, user, registered });
      });
    },

    /**
     * Registers the credential, which is a second factor and a passkey. The session has then proved the factor, so a session
     * that could only enroll becomes a full one.
     *
     * @returns recovery codes with the person's first factor, otherwise null.
     * @throws AppError as above; `validation_error` for a wrong response; `already_exists` for a registered credential.
     */
    async register(
      person: Person,
      { response, name: requestedName }: { response: RegistrationResponseJSON; name?: string },
    ): Promise<{ enrollment: Enrollment; recoveryCodes: string[] | null }> {
      const party = requireRelyingParty(relyingParty);
      requireFreshLogin(person);
      const name = requestedName === undefined ? DEFAULT_NAME : requireSafeName(requestedName, '/body/name');
      return database.peopleTransaction(async (transaction) => {
        const { db } = transaction;
        const challenge = readChallenge(response);
        const isIssued =
          challenge !== undefined &&
          (await useWebauthnChallenge(db, challenge, { purpose: 'enroll', userId: person.userId }));
        const credential = isIssued ? await verifyRegistration(party, challenge, response) : undefined;
        if (!credential) throw wrongRegistration();
        await lockPerson(db, person.userId);
        const earlier = await findEnrollments(db, person.userId);
        requireFactorBelowLimit(earlier);
        const enrollment = await insertCredential(db, { person, name, credential, rpId: party.id });
        await addSessionFactor(db, person.sessionId, 'webauthn');
        await recordPersonAudit(db, person, { action: 'user.mfa_added', details: { type: 'webauthn' } });
        await notifyOfFactorChange(transaction, notifications, person, 'mfa-added', name);
        const recoveryCodes =
          earlier.length === 0 ? await replaceRecoveryCodes(db, recoverySigner, person.userId) : null;
        return { enrollment, recoveryCodes };
      });
    },

    /** RP IDs of stored credentials that no longer work, because the service has another host name. At most ten. */
    findOtherRpIds: (): Promise<string[]> =>
      database.peopleTransaction(async ({ db }) => {
        const rows = await db
          .selectFrom('mfa_enrollments')
          .select('rp_id as rpId')
          .distinct()
          .where('rp_id', '<>', relyingParty?.id ?? '')
          .orderBy('rp_id')
          .limit(10)
          .$narrowType<{ rpId: NotNull }>()
          .execute();
        return rows.map(({ rpId }) => rpId);
      }),
  };
}

export function findCredentials(db: Db, userId: string): Promise<StoredCredential[]> {
  return db
    .selectFrom('mfa_enrollments')
    .select(['credential_id as credentialId', 'transports'])
    .where('user_id', '=', userId)
    .where('type', '=', 'webauthn')
    .where('confirmed_at', 'is not', null)
    .orderBy('id')
    .$narrowType<{ credentialId: NotNull }>()
    .execute();
}

/** @throws AppError `already_exists`, also if another person has the credential. */
async function insertCredential(
  db: Db,
  {
    person,
    name,
    credential,
    rpId,
  }: { person: Person; name: string; credential: NewCredential; rpId: string },
): Promise<Enrollment> {
  const [enrollment] = await db
    .insertInto('mfa_enrollments')
    .values({
      id: newId('mfaEnrollment'),
      user_id: person.userId,
      type: 'webauthn',
      name,
      credential_id: credential.credentialId,
      public_key: credential.publicKey,
      signature_counter: credential.counter,
      transports: [...credential.transports],
      rp_id: rpId,
      confirmed_at: sql<Date>`now()`,
    })
    .onConflict((conflict) => conflict.column('credential_id').doNothing())
    .returning(ENROLLMENT_COLUMNS)
    .execute();
  if (enrollment) return enrollment;
  throw new AppError('already_exists', {
    detail: 'This credential is already registered.',
    fix: 'Use it to sign in, or register another authenticator.',
    commitsTransaction: true,
  });
}

/** Commits the transaction, so that the challenge stays used. */
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
