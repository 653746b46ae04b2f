import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import { normalizeAccountAddress } from '../people/account-address.ts';
import { createOneTimeToken } from '../people/one-time-token.ts';
import { type SsoSetupLink, SsoSetupLinkEntity } from './sso-setup-link.entity.ts';

export interface CreatedSetupLink {
  id: string;
  /** With the token, which is not stored. */
  url: string;
  expiresAt: Date;
}

export interface SsoSetupLinkService {
  /**
   * Creates a link for a person outside the organization, and mails it if an address is given.
   *
   * @throws AppError `conflict` if too many are open; `rate_limited` for a second one to the address within a day;
   * `validation_error`.
   */
  create(scope: Scope, input: { email: string | undefined }): Promise<CreatedSetupLink>;
  /** Lists the links that can be used, or whose session has not ended. */
  list(scope: Scope, page: PageRequest): Promise<Page<Row<SsoSetupLink>>>;
  /** Voids the link and ends its session. @throws AppError `not_found` unless it is open. */
  revoke(scope: Scope, setupLinkId: string): Promise<void>;
}

export interface SsoSetupLinkOptions {
  database: Database;
  notifications: PersonNotificationService;
  ownDomains: readonly string[];
  /** Without a slash at its end. */
  publicUrl: string;
}

const LIFETIME_DAYS = 7;
const MAX_OPEN = 5;

export function createSsoSetupLinkService(options: SsoSetupLinkOptions): SsoSetupLinkService {
  const { database, publicUrl, ownDomains } = options;
  return {
    create: (scope, input) =>
      database.transaction(scope, async (transaction) => {
        requireOrganizationWide(scope);
        const { em } = transaction;
        const { organizationId, actor } = scope;
        const email =
          input.email === undefined ? null : normalizeAccountAddress(input.email, '/body/email', ownDomains);
        // Concurrent requests count each other's links.
        await em.execute(sql`select from organizations where id = ${organizationId} for update`);
        await requireFewLinks(em, organizationId, email);
        const { token, hash } = createOneTimeToken();
        const link = em.create(SsoSetupLinkEntity, {
          id: newId('ssoSetupLink'),
          organizationId,
          email,
          tokenHash: hash,
          createdByUserId: actor.kind === 'user' ? actor.id : null,
          createdByKeyId: actor.kind === 'api_key' ? actor.id : null,
          configurationId: null,
          sessionHash: null,
          expiresAt: new Date(Date.now() + LIFETIME_DAYS * 86_400_000),
          usedAt: null,
          revokedAt: null,
        });
        await em.flush();
        if (email !== null) await mail(transaction, options, { link, email, token });
        await audit(em, scope, link.id, 'created');
        return { id: link.id, url: `${publicUrl}/sso-setup?token=${token}`, expiresAt: link.expiresAt };
      }),

    list: (scope, page) =>
      database.read(scope, (reader) => {
        requireOrganizationWide(scope);
        return findPage(reader, SsoSetupLinkEntity, {
          where: {
            organizationId: scope.organizationId,
            revokedAt: null,
            expiresAt: { $gt: new Date() },
          },
          page,
        });
      }),

    revoke: (scope, setupLinkId) =>
      database.transaction(scope, async ({ em }) => {
        requireOrganizationWide(scope);
        const revoked = await em.execute<object[]>(sql`
          update sso_setup_links set revoked_at = now()
          where id = ${setupLinkId} and org_id = ${scope.organizationId} and revoked_at is null and expires_at > now()
          returning id`);
        if (revoked.length === 0) throw notFound('open set-up link', setupLinkId);
        await audit(em, scope, setupLinkId, 'revoked');
      }),
  };
}

/** An organization must not make the service flood mailboxes with its name. */
async function requireFewLinks(
  em: EntityManager,
  organizationId: string,
  email: string | null,
): Promise<void> {
  const [row] = await em.execute<{ open: number; waitSeconds: number | null }[]>(sql`
    select count(*) filter (where revoked_at is null and expires_at > now())::int as open,
      max(ceil(extract(epoch from created_at + interval '1 day' - now()))) filter (
        where email = ${email} and created_at > now() - interval '1 day')::int as "waitSeconds"
    from sso_setup_links where org_id = ${organizationId}`);
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
  { link, email, token }: { link: SsoSetupLink; email: string; token: string },
): Promise<void> {
  const { organizationId, createdByUserId } = link;
  const [facts] = await transaction.em.execute<
    { name: string; slug: string; inviterEmail: string | null }[]
  >(sql`
    select o.name, o.slug, (select email from users where id = ${createdByUserId}) as "inviterEmail"
    from organizations o where o.id = ${organizationId}`);
  if (!facts) throw notFound('organization', organizationId);
  await notifications.notify<'sso-setup-link', 'token'>(transaction, {
    organizationId,
    userId: null,
    email,
    template: 'sso-setup-link',
    params: {
      organizationName: isSafeName(facts.name) ? facts.name : facts.slug,
      inviterEmail: facts.inviterEmail,
      expiresAt: formatUtc(link.expiresAt),
    },
    secrets: { token },
  });
}

const audit = (
  em: EntityManager,
  scope: Scope,
  resourceId: string,
  what: 'created' | 'revoked',
): Promise<void> =>
  recordAudit(em, scope, { action: `sso_setup_link.${what}`, resourceType: 'sso_setup_link', resourceId });
