import { type Expression, type SqlBool, sql } from 'kysely';
import { createOneTimeToken } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requesterProblem } from '../identity/requester.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { requireNoAlarm } from '../messages/injection-alarms.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { normalizeAccountAddress } from '../people/account-address.ts';
import { type SsoSetupLink, SsoSetupLinkEntity } from './sso-setup-link.entity.ts';

/**
 * SQL: the set-up link `l` of the organization `o` works. It stops working when its creator, a member or a key, loses the
 * right to set up single sign-on. For the people role, which sees both.
 */
export const IS_LIVE_SETUP_LINK: Expression<SqlBool> = sql`
  l.revoked_at is null and l.expires_at > now() and o.deleted_at is null and o.status = 'active'
  and ${requesterProblem(
    {
      organizationId: sql.ref('l.org_id'),
      userId: sql.ref('l.created_by_user_id'),
      keyId: sql.ref('l.created_by_key_id'),
    },
    { act: 'sso_setup_link' },
  )} is null`;

export interface CreatedSetupLink {
  id: string;
  /** Contains the token, which is not stored. */
  url: string;
  expiresAt: Date;
}

export type SsoSetupLinkService = ReturnType<typeof createSsoSetupLinkService>;

export interface SsoSetupLinkOptions {
  database: Database;
  notifications: PersonNotificationService;
  ownDomains: readonly string[];
  /** Without a trailing slash. */
  publicUrl: string;
}

const LIFETIME_DAYS = 7;
const MAX_OPEN = 5;

export function createSsoSetupLinkService(options: SsoSetupLinkOptions) {
  const { database, publicUrl, ownDomains } = options;
  return {
    /**
     * Creates a link for a person outside the organization, and mails it if an address is given.
     *
     * @throws AppError `conflict` if too many are open; `rate_limited` for a second link to the address within a day;
     * `policy_violation` for a key after an injection alarm; `validation_error`.
     */
    create: (scope: Scope, input: { email: string | undefined }): Promise<CreatedSetupLink> =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { db } = transaction;
        const email =
          input.email === undefined ? null : normalizeAccountAddress(input.email, '/body/email', ownDomains);
        await lockOrganization(db, scope);
        await requireNoAlarm(db, scope, 'creates setup links');
        await requireFewLinks(db, scope.organizationId, email);
        const { token, hash } = createOneTimeToken();
        const link = newLink(scope, { email, tokenHash: hash });
        await db.insertInto('sso_setup_links').values(link).execute();
        if (email !== null) await mail(transaction, options, { link, email, token });
        await audit(db, scope, link.id, 'created');
        return { id: link.id, url: `${publicUrl}/sso-setup?token=${token}`, expiresAt: link.expires_at };
      }),

    /** Lists the links that can be used and those whose session has not ended. */
    list: (scope: Scope, page: PageRequest): Promise<Page<SsoSetupLink>> =>
      database.read(scope, ({ db }) => {
        requireOrganizationWide(scope);
        const links = db
          .selectFrom('sso_setup_links')
          .select(columnsOf(SsoSetupLinkEntity))
          .where('org_id', '=', scope.organizationId)
          .where(IS_OPEN);
        return findPage(links, 'sso_setup_links.id', page);
      }),

    /** Voids the link and ends its session. @throws AppError `not_found` unless it is open. */
    revoke: (scope: Scope, setupLinkId: string): Promise<void> =>
      database.transaction(scope, async ({ db }) => {
        requireOrganizationWide(scope);
        await db
          .updateTable('sso_setup_links')
          .set({ revoked_at: sql<Date>`now()` })
          .where('id', '=', setupLinkId)
          .where('org_id', '=', scope.organizationId)
          .where(IS_OPEN)
          .returning('id')
          .executeTakeFirstOrThrow(() => notFound('open set-up link', setupLinkId));
        await audit(db, scope, setupLinkId, 'revoked');
      }),
  };
}

const IS_OPEN = sql<boolean>`revoked_at is null and expires_at > now()`;

const newLink = (
  { organizationId, actor }: Scope,
  { email, tokenHash }: Pick<SsoSetupLink, 'email' | 'tokenHash'>,
) => ({
  id: newId('ssoSetupLink'),
  org_id: organizationId,
  email,
  token_hash: tokenHash,
  created_by_user_id: actor.kind === 'user' ? actor.id : null,
  created_by_key_id: actor.kind === 'api_key' ? actor.id : null,
  configuration_id: null,
  session_hash: null,
  expires_at: new Date(Date.now() + LIFETIME_DAYS * 86_400_000),
  used_at: null,
  revoked_at: null,
});

/** The lock makes concurrent requests count each other's links. */
async function lockOrganization(db: Db, { organizationId }: Scope): Promise<void> {
  await db.selectFrom('organizations').select('id').where('id', '=', organizationId).forUpdate().execute();
}

/** An organization must not make the service flood mailboxes with its name. */
async function requireFewLinks(db: Db, organizationId: string, email: string | null): Promise<void> {
  const row = await db
    .selectFrom('sso_setup_links')
    .select((eb) => [
      eb.fn.countAll<number>().filterWhere(IS_OPEN).as('open'),
      eb.fn
        .max(sql<number | null>`ceil(extract(epoch from created_at + interval '1 day' - now()))::int`)
        .filterWhere(sql<boolean>`email = ${email}`)
        .filterWhere('created_at', '>', sql<Date>`now() - interval '1 day'`)
        .as('waitSeconds'),
    ])
    .where('org_id', '=', organizationId)
    .executeTakeFirst();
  if (row && row.waitSeconds !== null)
    throw new AppError('rate_limited', {
      detail: 'A set-up link was mailed to this address within the last 24 hours.',
      fix: 'Create a link without an address, and send it yourself.',
      headers: { 'retry-after': String(row.waitSeconds) },
    });
  if (row && row.open >= MAX_OPEN)
    throw new AppError('conflict', {
      detail: `The organization has ${MAX_OPEN} open set-up links.`,
      fix: 'Revoke one first: DELETE /api/v1/org/sso/setup-links/{id}.',
    });
}

async function mail(
  transaction: Transaction,
  { notifications }: SsoSetupLinkOptions,
  { link, email, token }: { link: ReturnType<typeof newLink>; email: string; token: string },
): Promise<void> {
  const organizationId = link.org_id;
  const facts = await transaction.db
    .selectFrom('organizations as o')
    .leftJoin('users as u', (join) => join.on('u.id', '=', link.created_by_user_id ?? ''))
    .select(['o.name', 'o.slug', 'u.email as inviterEmail'])
    .where('o.id', '=', organizationId)
    .executeTakeFirstOrThrow(() => notFound('organization', organizationId));
  await notifications.notify<'sso-setup-link', 'token'>(transaction, {
    organizationId,
    userId: null,
    email,
    template: 'sso-setup-link',
    params: {
      organizationName: isSafeName(facts.name) ? facts.name : facts.slug,
      inviterEmail: facts.inviterEmail,
      expiresAt: formatUtc(link.expires_at),
    },
    secrets: { token },
  });
}

const audit = (db: Db, scope: Scope, resourceId: string, what: 'created' | 'revoked'): Promise<void> =>
  recordAudit(db, scope, { action: `sso_setup_link.${what}`, resourceType: 'sso_setup_link', resourceId });
