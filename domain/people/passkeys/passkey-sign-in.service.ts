import type { Database } from '../../../platform/database/database.ts';
import { AppError } from '../../../platform/errors.ts';
import type { Client } from '../../identity/person.ts';
import { invalidCredentials, wrongCredentials } from '../../identity/sign-in-errors.ts';
import type { PersonNotificationService } from '../../notifications/person-notification.service.ts';
import { findPendingSignIn } from '../pending-sign-ins.ts';
import type { SignedIn } from '../sign-in.service.ts';
import { startSession } from '../start-session.ts';
import { findCredentials } from './passkey-enrollment.service.ts';
import { useAssertion } from './use-assertion.ts';
import {
  type AuthenticationResponseJSON,
  createAssertionOptions,
  type PublicKeyCredentialRequestOptionsJSON,
  type RelyingParty,
  requireRelyingParty,
} from './webauthn-ceremonies.ts';
import { createWebauthnChallenge } from './webauthn-challenges.ts';

export type PasskeySignInService = ReturnType<typeof createPasskeySignInService>;

export interface PasskeySignInOptions {
  database: Database;
  notifications: PersonNotificationService;
  relyingParty: RelyingParty | null;
}

export function createPasskeySignInService(options: PasskeySignInOptions) {
  const { database, notifications } = options;
  return {
    /**
     * Options for `navigator.credentials.get()`. Their challenge works once, for five minutes, and only for the requested
     * purpose.
     *
     * @param mfaToken of a sign-in that waits for its second factor; undefined for a sign-in by passkey alone.
     * @throws AppError `invalid_credentials` for a token that is unknown, used or expired; `conflict` for a person without a
     * passkey; `feature_disabled` if the service has no host name.
     */
    async options(
      mfaToken: string | undefined,
      client: Client,
    ): Promise<PublicKeyCredentialRequestOptionsJSON> {
      const party = requireRelyingParty(options.relyingParty);
      return database.peopleTransaction(async ({ db }) => {
        if (mfaToken === undefined)
          return createAssertionOptions(party, {
            challenge: await createWebauthnChallenge(db, { purpose: 'sign_in' }),
          });
        const pending = await findPendingSignIn(db, mfaToken, client);
        if (!pending) throw invalidCredentials();
        const { userId, mfaTokenHash } = pending;
        const allowed = await findCredentials(db, userId);
        if (allowed.length === 0) throw noPasskey();
        const challenge = await createWebauthnChallenge(db, {
          purpose: 'second_factor',
          userId,
          mfaTokenHash,
        });
        return createAssertionOptions(party, { challenge, allowed });
      });
    },

    /** Signs in the person whose passkey it is. @throws AppError `invalid_credentials`, or `feature_disabled` as above. */
    async signIn(response: AuthenticationResponseJSON, client: Client): Promise<SignedIn> {
      const relyingParty = requireRelyingParty(options.relyingParty);
      return database.peopleTransaction(async (transaction) => {
        const used = await useAssertion(
          transaction,
          { relyingParty, notifications },
          { occasion: { purpose: 'sign_in' }, response, client },
        );
        // Commits the transaction, so that the challenge stays used.
        if (!used) throw wrongCredentials();
        const { userId } = used;
        return {
          userId,
          signIn: await startSession(transaction.db, { userId, method: 'passkey', ...client }),
        };
      });
    },
  };
}

function noPasskey(): AppError {
  return new AppError('conflict', {
    detail: 'You have no passkey.',
    fix: 'Complete the sign-in with one of the methods that it returned.',
  });
}
