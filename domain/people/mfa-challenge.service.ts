import { type NotNull, sql } from 'kysely';
import type { SecretBox, Signer } from '../../platform/crypto.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { Client } from '../identity/person.ts';
import { invalidCredentials, wrongCredentials } from '../identity/sign-in-errors.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { useAssertion } from './passkeys/use-assertion.ts';
import {
  type AuthenticationResponseJSON,
  type RelyingParty,
  requireRelyingParty,
} from './passkeys/webauthn-ceremonies.ts';
import {
  completePendingSignIn,
  countFailure,
  findPendingSignIn,
  findWaitingUser,
  type PendingSignIn,
} from './pending-sign-ins.ts';
import { useRecoveryCode } from './recovery-codes.ts';
import type { SignedIn } from './sign-in.service.ts';
import type { SignInThrottle } from './sign-in-throttle.ts';
import { startSession } from './start-session.ts';
import { findTotpStep, totpContext } from './totp.ts';

/** How a person proves the second factor. */
export type MfaProof =
  | { method: 'totp' | 'recovery_code'; code: string }
  | { method: 'webauthn'; response: AuthenticationResponseJSON };

export type MfaChallengeService = ReturnType<typeof createMfaChallengeService>;

export interface MfaChallengeOptions {
  database: Database;
  notifications: PersonNotificationService;
  throttle: SignInThrottle;
  secretBox: SecretBox;
  recoverySigner: Signer;
  relyingParty: RelyingParty | null;
  /** Restores a deleted account once its second factor is proved. Injected, because `people` must not import `deletions`. */
  restoreDeleted(transaction: Transaction, userId: string, client: Client): Promise<void>;
}

export function createMfaChallengeService(options: MfaChallengeOptions) {
  const { database, notifications, throttle, restoreDeleted } = options;
  return {
    /**
     * Completes a sign-in with a code of an authenticator app, a recovery code, or a passkey.
     *
     * @throws AppError `invalid_credentials` for a wrong code or response, and for a token that is unknown, used, older than
     * ten minutes, of another browser, or void after five failures or a change of the password; `rate_limited` after
     * repeated failures of the person, with whatever tokens, because a thief of the password could otherwise guess codes.
     */
    async complete(input: { mfaToken: string; proof: MfaProof }, client: Client): Promise<SignedIn> {
      const userId = await database.peopleTransaction(({ db }) => findWaitingUser(db, input.mfaToken));
      if (userId === undefined) throw invalidCredentials();
      const device = { person: { userId }, tokens: client.deviceTokens ?? [] };
      return throttle.run({ account: `mfa:${userId}`, ip: client.ip, device }, () => complete(input, client));
    },
  };

  function complete(
    { mfaToken, proof }: { mfaToken: string; proof: MfaProof },
    client: Client,
  ): Promise<SignedIn> {
    return database.peopleTransaction(async (transaction) => {
      const { db } = transaction;
      const pending = await findPendingSignIn(db, mfaToken, client);
      if (!pending) throw invalidCredentials();
      const { userId, email, method, ssoConfigurationId } = pending;
      if (!(await isProved(transaction, options, { pending, proof, client }))) {
        if (await countFailure(db, pending)) await warn(transaction, pending, client);
        throw wrongCredentials();
      }
      await completePendingSignIn(db, pending);
      if (proof.method === 'recovery_code') {
        await recordPersonAudit(db, { userId, ...client }, { action: 'user.recovery_code_used' });
        await notifications.notify(transaction, {
          userId,
          email,
          template: 'recovery-code-used',
          params: { at: formatUtc(new Date()), ip: client.ip },
        });
      }
      if (method === 'recovery') await restoreDeleted(transaction, userId, client);
      const signIn = await startSession(db, {
        userId,
        method,
        factors: [proof.method],
        ssoConfigurationId,
        ...client,
      });
      return { userId, signIn };
    });
  }

  /** A caller who guesses codes knows the password. Sends at most one email an hour. */
  async function warn(
    transaction: Transaction,
    { userId, email }: PendingSignIn,
    client: Client,
  ): Promise<void> {
    const now = new Date();
    await recordPersonAudit(transaction.db, { userId, ...client }, { action: 'user.mfa_failed' });
    await notifications.notify(transaction, {
      userId,
      email,
      template: 'mfa-failed',
      params: { at: formatUtc(now), ip: client.ip },
      dedupeKey: `mfa-failed/${userId}/${now.toISOString().slice(0, 13)}`,
    });
  }
}

async function isProved(
  transaction: Transaction,
  { secretBox, recoverySigner, notifications, relyingParty }: MfaChallengeOptions,
  { pending, proof, client }: { pending: PendingSignIn; proof: MfaProof; client: Client },
): Promise<boolean> {
  const { db } = transaction;
  const { userId, mfaTokenHash } = pending;
  if (proof.method !== 'webauthn') {
    const input = { userId, code: proof.code };
    return proof.method === 'totp'
      ? useTotpCode(db, secretBox, input)
      : useRecoveryCode(db, recoverySigner, input);
  }
  const used = await useAssertion(
    transaction,
    { relyingParty: requireRelyingParty(relyingParty), notifications },
    {
      occasion: { purpose: 'second_factor', userId, mfaTokenHash },
      response: proof.response,
      client,
    },
  );
  return used !== undefined;
}

/** Tries the person's apps in turn. Of two concurrent uses of a time step, one succeeds. */
async function useTotpCode(
  db: Db,
  secretBox: SecretBox,
  { userId, code }: { userId: string; code: string },
): Promise<boolean> {
  const apps = await db
    .selectFrom('mfa_enrollments')
    .select(['id', 'secret', 'last_step as lastStep'])
    .where('user_id', '=', userId)
    .where('type', '=', 'totp')
    .where('secret', 'is not', null)
    .where('confirmed_at', 'is not', null)
    .orderBy('id')
    .$narrowType<{ secret: NotNull }>()
    .execute();
  for (const { id, secret, lastStep } of apps) {
    const step = await findTotpStep(secretBox.open(secret, totpContext(id)), code, lastStep);
    if (step === null) continue;
    const { numUpdatedRows } = await db
      .updateTable('mfa_enrollments')
      .set({ last_step: step, last_used_at: sql<Date>`now()` })
      .where('id', '=', id)
      .where((eb) => eb.or([eb('last_step', 'is', null), eb('last_step', '<', step)]))
      .executeTakeFirst();
    if (numUpdatedRows > 0n) return true;
  }
  return false;
}
