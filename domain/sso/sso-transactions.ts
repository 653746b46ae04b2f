import { sql } from 'kysely';
import { randomBase62, type SecretBox, sha256 } from '../../platform/crypto.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { SealedColumn } from '../../platform/sealed-column.ts';
import type { SsoClaims, SsoPurpose } from './sso-login.entity.ts';
import type { SsoSettings } from './sso-settings.ts';

const LIFETIME_MINUTES = 10;
const TOKEN_LENGTH = 43;
const TOKEN_PATTERN = /^[0-9A-Za-z]{43}$/;

export interface NewSsoTransaction {
  settings: Pick<SsoSettings, 'id' | 'organizationId' | 'version'>;
  purpose: SsoPurpose;
  browserToken: string;
  redirectTo: string;
  isFresh?: boolean;
  userId?: string | null;
  /** Known only to this service: nonce, PKCE verifier, id of a request. */
  secrets?: object;
  claims?: SsoClaims;
}

/** A random token of 256 bits: state of a login, cookie of a browser, or link token. */
export const createSsoToken = (): string => randomBase62(TOKEN_LENGTH);

/** Reuses the browser's token if it has one, so that logins in two tabs both work. Otherwise creates one. */
export const browserTokenOf = (token: string | undefined): string =>
  token !== undefined && TOKEN_PATTERN.test(token) ? token : createSsoToken();

const sealContext = (tokenHash: Buffer): string => `sso-transaction:${tokenHash.toString('hex')}`;

export const SSO_TRANSACTION_SECRETS: SealedColumn = {
  table: 'sso_transactions',
  column: 'secrets',
  key: ['token_hash'],
  context: ({ token_hash }) => sealContext(token_hash as Buffer),
};

/** Runs in the caller's transaction, as the people role. @param token {@link createSsoToken} */
export async function createSsoTransaction(
  db: Db,
  secretBox: SecretBox,
  token: string,
  transaction: NewSsoTransaction,
): Promise<void> {
  const { settings, purpose, browserToken, redirectTo, isFresh = false, userId = null } = transaction;
  const tokenHash = sha256(token);
  const secrets =
    transaction.secrets && secretBox.seal(JSON.stringify(transaction.secrets), sealContext(tokenHash));
  await db
    .insertInto('sso_transactions')
    .values({
      token_hash: tokenHash,
      org_id: settings.organizationId,
      configuration_id: settings.id,
      configuration_version: settings.version,
      purpose,
      browser_hash: sha256(browserToken),
      secrets: secrets ?? null,
      redirect_to: redirectTo,
      is_fresh: isFresh,
      user_id: userId,
      claims: json(transaction.claims ?? null),
      expires_at: sql<Date>`now() + ${LIFETIME_MINUTES} * interval '1 minute'`,
      used_at: null,
    })
    .execute();
}

export interface UsedSsoTransaction<Secrets> {
  organizationId: string;
  configurationId: string;
  purpose: SsoPurpose;
  redirectTo: string;
  isFresh: boolean;
  userId: string | null;
  claims: SsoClaims | null;
  secrets: Secrets;
  createdAt: Date;
}

export interface SsoTransactionUse {
  token: string;
  /** Token of the browser that continues. */
  browserToken: string | undefined;
  purposes: readonly [SsoPurpose, ...SsoPurpose[]];
}

/**
 * Uses up a transaction. Of two concurrent uses, one succeeds; another browser cannot use it. The configuration must not
 * have changed since the transaction began. It must be active, except for tests, and for linking through a replaced
 * configuration.
 */
export async function useSsoTransaction<Secrets>(
  db: Db,
  secretBox: SecretBox,
  { token, browserToken, purposes }: SsoTransactionUse,
): Promise<UsedSsoTransaction<Secrets> | undefined> {
  if (browserToken === undefined) return undefined;
  const tokenHash = sha256(token);
  const row = await db
    .updateTable('sso_transactions as t')
    .from('sso_configurations as c')
    .set({ used_at: sql<Date>`now()` })
    .where('t.token_hash', '=', tokenHash)
    .where('t.browser_hash', '=', sha256(browserToken))
    .where('t.purpose', '=', anyOf(purposes))
    .where('t.used_at', 'is', null)
    .where('t.expires_at', '>', sql<Date>`now()`)
    .whereRef('c.id', '=', 't.configuration_id')
    .whereRef('c.version', '=', 't.configuration_version')
    .where(sql<boolean>`(t.purpose = 'test' or c.status = 'active'
      or (t.purpose = 'prove' and c.replaced_at is not null))`)
    .returning([
      't.org_id as organizationId',
      't.configuration_id as configurationId',
      't.purpose',
      't.redirect_to as redirectTo',
      't.is_fresh as isFresh',
      't.user_id as userId',
      't.claims',
      't.secrets as sealed',
      't.created_at as createdAt',
    ])
    .executeTakeFirst();
  if (!row) return undefined;
  const { sealed, ...used } = row;
  const secrets = sealed === null ? {} : JSON.parse(secretBox.open(sealed, sealContext(tokenHash)));
  return { ...used, secrets };
}

/** Reads the transaction that a browser could continue with a token, without using it up. */
export async function peekSsoTransaction(
  db: Db,
  { token, browserToken, purposes }: SsoTransactionUse,
): Promise<
  Pick<UsedSsoTransaction<unknown>, 'organizationId' | 'userId' | 'claims' | 'redirectTo'> | undefined
> {
  if (browserToken === undefined) return undefined;
  return db
    .selectFrom('sso_transactions')
    .select(['org_id as organizationId', 'user_id as userId', 'claims', 'redirect_to as redirectTo'])
    .where('token_hash', '=', sha256(token))
    .where('browser_hash', '=', sha256(browserToken))
    .where('purpose', '=', anyOf(purposes))
    .where('used_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
}
