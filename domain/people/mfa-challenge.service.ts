import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { type SecretBox, type Signer, sha256 } from '../../platform/crypto.ts';
import type { Database } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { SessionMethod } from '../identity/person.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { Client } from './client.ts';
import { totpContext } from './mfa.service.ts';
import { useRecoveryCode } from './recovery-codes.ts';
import type { SignedIn } from './sign-in.service.ts';
import { invalidCredentials, startSession } from './start-session.ts';
import { findTotpStep } from './totp.ts';

export interface MfaChallengeService {
  /**
   * Completes a sign-in with a code of an authenticator app or a recovery code.
   *
   * @throws AppError `invalid_credentials` for a wrong code, and for a token that is unknown, used, older than ten minutes,
   * or void after five wrong codes or a change of the password.
   */
  complete(
    input: { mfaToken: string; method: 'totp' | 'recovery_code'; code: string },
    client: Client,
  ): Promise<SignedIn>;
}

export interface MfaChallengeOptions {
  database: Database;
  notifications: PersonNotificationService;
  secretBox: SecretBox;
  recoverySigner: Signer;
}

const MAX_FAILURES = 5;

interface PendingChallenge {
  userId: string;
  email: string;
  method: SessionMethod;
  ssoConfigurationId: string | null;
}

export function createMfaChallengeService(options: MfaChallengeOptions): MfaChallengeService {
  const { database, notifications, secretBox, recoverySigner } = options;
  return {
    complete: ({ mfaToken, method, code }, client) =>
      database.peopleTransaction(async (transaction) => {
        const { em } = transaction;
        const tokenHash = sha256(mfaToken);
        // Locked until the commit, so concurrent guesses are counted one by one.
        const [challenge] = await em.execute<PendingChallenge[]>(sql`
          select c.user_id as "userId", u.email, c.method, c.sso_configuration_id as "ssoConfigurationId"
          from mfa_challenges c join users u on u.id = c.user_id
          where c.token_hash = ${tokenHash} and c.used_at is null and c.expires_at > now()
            and c.failures < ${MAX_FAILURES} for update of c`);
        if (!challenge) throw invalidCredentials();
        const { userId } = challenge;
        const isRight =
          method === 'totp'
            ? await useTotpCode(em, secretBox, { userId, code })
            : await useRecoveryCode(em, recoverySigner, { userId, code });
        if (!isRight) {
          await em.execute(
            sql`update mfa_challenges set failures = failures + 1 where token_hash = ${tokenHash}`,
          );
          throw wrongCode();
        }
        await em.execute(sql`update mfa_challenges set used_at = now() where token_hash = ${tokenHash}`);
        if (method === 'recovery_code') {
          await recordPersonAudit(em, { userId, ...client }, { action: 'user.recovery_code_used' });
          await notifications.notify(transaction, {
            userId,
            email: challenge.email,
            template: 'recovery-code-used',
            params: { at: formatUtc(new Date()), ip: client.ip },
          });
        }
        const signIn = await startSession(em, {
          userId,
          method: challenge.method,
          factors: [method],
          ssoConfigurationId: challenge.ssoConfigurationId,
          ...client,
        });
        return { userId, signIn };
      }),
  };
}

/** Tries the person's apps in turn. Of two concurrent uses of a step one succeeds. */
async function useTotpCode(
  em: EntityManager,
  secretBox: SecretBox,
  { userId, code }: { userId: string; code: string },
): Promise<boolean> {
  const apps = await em.execute<{ id: string; secret: Buffer; lastStep: number | null }[]>(sql`
    select id, secret, last_step as "lastStep" from mfa_enrollments
    where user_id = ${userId} and type = 'totp' and confirmed_at is not null order by id`);
  for (const { id, secret, lastStep } of apps) {
    const step = await findTotpStep(secretBox.open(secret, totpContext(id)), code, lastStep);
    if (step === null) continue;
    const used = await em.execute<object[]>(sql`
      update mfa_enrollments set last_step = ${step}, last_used_at = now()
      where id = ${id} and (last_step is null or last_step < ${step}) returning id`);
    if (used.length > 0) return true;
  }
  return false;
}

/** The count of failures is committed. */
function wrongCode(): AppError {
  const { detail, fix } = invalidCredentials();
  return new AppError('invalid_credentials', { detail, fix, commitsTransaction: true });
}
