import type { SecretBox } from '../../platform/crypto.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Client } from '../identity/person.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { SignedIn } from '../people/sign-in.service.ts';
import { checkIdentity, type StatedIdentity } from './check-identity.ts';
import {
  addIdentity,
  findKnownUser,
  joinOrganization,
  requireNotRemoved,
  signInIdentity,
} from './sign-in-identity.ts';
import { createSsoChecks, type SsoChecks, SsoRefusal, ssoFailed, ssoNotStarted } from './sso-checks.ts';
import type { SsoClaims } from './sso-login.entity.ts';
import { countUnlinked } from './sso-providers.ts';
import { findSettingsById, type SsoSettings } from './sso-settings.ts';
import { type UsedSsoTransaction, useSsoTransaction } from './sso-transactions.ts';

export interface CompletionOptions {
  database: Database;
  secretBox: SecretBox;
  notifications: PersonNotificationService;
  ownerNotifications: NotificationService;
  /** Domains in which every tenant can receive mail. */
  ownDomains: readonly string[];
}

/** A replaced configuration, through which a person can prove which account is theirs. */
export interface ReplacedConfiguration {
  configurationId: string;
  name: string;
}

/** Replaced configurations whose people are not all linked with the active one yet. */
export async function findReplacedConfigurations(
  db: Db,
  organizationId: string,
): Promise<ReplacedConfiguration[]> {
  const unlinked = await countUnlinked(db, organizationId);
  const open = [...unlinked].filter(([, count]) => count > 0).map(([id]) => id);
  if (open.length === 0) return [];
  return db
    .selectFrom('sso_configurations')
    .select(['id as configurationId', 'name'])
    .where('id', '=', anyOf(open))
    .orderBy('replaced_at', 'desc')
    .execute();
}

export interface LinkUse {
  token: string;
  browserToken: string | undefined;
}

export interface OpenLink {
  transaction: UsedSsoTransaction<unknown>;
  /** The active configuration, which proved the identity. */
  settings: SsoSettings;
  claims: SsoClaims;
}

/**
 * Uses up the link of an identity that is proved but unknown, in the caller's transaction. @throws AppError `sso_failed`.
 */
export async function useLink(
  { secretBox }: Pick<CompletionOptions, 'secretBox'>,
  db: Db,
  { token, browserToken }: LinkUse,
): Promise<OpenLink> {
  const transaction = await useSsoTransaction(db, secretBox, { token, browserToken, purposes: ['link'] });
  const settings = transaction && (await findSettingsById(db, secretBox, transaction.configurationId));
  if (!settings || !transaction?.claims) throw ssoNotStarted();
  return { transaction, settings, claims: transaction.claims };
}

/** Links a proved identity with an account, in the caller's transaction. */
export async function linkIdentity(
  { notifications, ownDomains }: CompletionOptions,
  transaction: Transaction,
  { settings, claims, userId }: { settings: SsoSettings; claims: SsoClaims; userId: string },
  client: Client,
): Promise<SignedIn> {
  const { db } = transaction;
  const checks = createSsoChecks();
  try {
    const identity = toStatedIdentity(claims);
    await checkIdentity(db, settings, { identity, ownDomains }, checks);
    await requireNotRemoved(db, { organizationId: settings.organizationId, userId }, checks);
  } catch (error) {
    throw error instanceof SsoRefusal ? ssoFailed(error.check) : error;
  }
  if (!(await addIdentity(db, settings, { claims, userId }))) throw linkedAlready();
  await joinOrganization(db, settings, { userId, client });
  const { organizationId, organizationName } = settings;
  await recordAudit(
    db,
    { organizationId, actor: { kind: 'user', id: userId }, ip: client.ip, requestId: client.requestId },
    { action: 'sso_identity.linked', resourceType: 'user', resourceId: userId },
  );
  const user = await db.selectFrom('users').select('email').where('id', '=', userId).executeTakeFirst();
  await notifications.notify(transaction, {
    userId,
    email: user?.email ?? claims.email,
    template: 'sso-linked',
    params: { organizationName, at: formatUtc(new Date()), ip: client.ip },
  });
  const { authenticatedAt } = toStatedIdentity(claims);
  return signInIdentity(db, settings, { userId, authenticatedAt }, client);
}

/**
 * Links the pending identity of a browser with the account that a replaced configuration knows. The person has signed in
 * through both configurations.
 *
 * @throws SsoRefusal for a person whom the replaced configuration does not know; AppError as {@link useLink}.
 */
export async function linkByFormer(
  options: CompletionOptions,
  transaction: Transaction,
  { former, claims, link }: { former: SsoSettings; claims: SsoClaims; link: LinkUse },
  { checks, client }: { checks: SsoChecks; client: Client },
): Promise<{ signedIn: SignedIn; redirectTo: string }> {
  const { db } = transaction;
  const userId = await findKnownUser(db, former, claims, checks);
  if (userId === undefined)
    return checks.fail('account', 'an unknown person', 'a person who has signed in through it before');
  const open = await useLink(options, db, link);
  if (open.settings.organizationId !== former.organizationId) throw ssoNotStarted();
  const signedIn = await linkIdentity(options, transaction, { ...open, userId }, client);
  return { signedIn, redirectTo: open.transaction.redirectTo };
}

/** Turns earlier claims into an identity to check again, because the organization may have lost the domain since. */
export const toStatedIdentity = (claims: SsoClaims): StatedIdentity => ({
  ...claims,
  emailVerified: undefined,
  authenticatedAt: claims.authenticatedAt === null ? null : new Date(claims.authenticatedAt),
});

const linkedAlready = (): AppError =>
  new AppError('conflict', {
    detail: 'The identity is already linked with an account.',
    fix: 'Sign in through SSO.',
  });
