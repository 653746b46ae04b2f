import type { FilterQuery } from '@mikro-orm/core';
import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import { toAddressKey } from '../mime/address-key.ts';
import { type Suppression, SuppressionEntity, type SuppressionOrigin } from './suppression.entity.ts';

export interface SuppressionFilter {
  email?: string;
  origin?: SuppressionOrigin;
}

/**
 * Addresses to which the organization, an environment or an inbox does not send. Bounces and complaints suppress for the
 * organization, a credential for the place it is bound to. A bound credential sees only the suppressions that originate
 * there: it must not reveal the correspondents of other inboxes.
 */
export interface SuppressionService {
  list(scope: Scope, filter: SuppressionFilter, page: PageRequest): Promise<Page<Suppression>>;
  /**
   * Suppresses an address manually, where the credential is bound. An existing suppression of that scope is kept.
   *
   * @throws AppError `validation_error`.
   */
  add(scope: Scope, email: string): Promise<{ suppression: Suppression; created: boolean }>;
  /**
   * Removes the suppressions of the address that lie within the credential's binding; an organization-wide credential
   * removes all of them.
   *
   * @throws AppError `not_found`; `permission_denied` if a bound credential sees only one of the whole organization.
   */
  remove(scope: Scope, email: string): Promise<void>;
}

export function createSuppressionService({ database }: { database: Database }): SuppressionService {
  return {
    list: (scope, filter, page) =>
      database.read(scope, (reader) => {
        const where: FilterQuery<Suppression>[] = [visibleTo(scope)];
        if (filter.email !== undefined) where.push({ email: toAddressKey(filter.email) ?? '' });
        if (filter.origin) where.push({ origin: filter.origin });
        return findPage(reader, SuppressionEntity, { where, page });
      }),

    add: (scope, address) =>
      database.transaction(scope, async ({ em }) => {
        const email = toAddressKey(address);
        if (email === null)
          throw invalid('/body/email', 'is not an email address', 'Use one address of the form name@domain.');
        const { organizationId } = scope;
        const scopeId = scope.inboxId ?? (scope.environmentBound ? scope.environmentId : organizationId);
        const { affectedRows } = await em.execute<{ affectedRows: number }>(
          sql`insert into suppressions (id, org_id, scope_id, email, origin, env_id, inbox_id, created_at)
           values (${newId('suppression')}, ${organizationId}, ${scopeId}, ${email}, 'manual',
             ${scope.environmentBound ? scope.environmentId : null}, ${scope.inboxId ?? null}, now())
           on conflict (org_id, email, scope_id) do nothing`,
          [],
          'run',
        );
        const suppression = await em.findOneOrFail(SuppressionEntity, { organizationId, email, scopeId });
        const created = affectedRows === 1;
        if (created) await audit(em, scope, email, 'created');
        return { suppression, created };
      }),

    remove: (scope, address) =>
      database.transaction(scope, async ({ em }) => {
        const email = toAddressKey(address);
        if (email === null) throw notFound('suppression', address);
        const visible: FilterQuery<Suppression> = { $and: [{ email }, visibleTo(scope)] };
        const removable = isOrganizationWide(scope)
          ? visible
          : { $and: [visible, { scopeId: { $ne: scope.organizationId } }] };
        if ((await em.nativeDelete(SuppressionEntity, removable)) > 0)
          return audit(em, scope, email, 'removed');
        if ((await em.count(SuppressionEntity, visible)) > 0) throw suppressedForOrganization();
        throw notFound('suppression', address);
      }),
  };
}

function audit(em: EntityManager, scope: Scope, email: string, change: string): Promise<void> {
  return recordAudit(em, scope, {
    action: `suppression.${change}`,
    resourceType: 'suppression',
    resourceId: email,
    details: {
      env_id: scope.environmentBound ? scope.environmentId : null,
      inbox_id: scope.inboxId ?? null,
    },
  });
}

function suppressedForOrganization(): AppError {
  return new AppError('permission_denied', {
    detail:
      'The address bounced, complained or unsubscribed, which suppresses it for the whole organization, but this credential is bound to an environment or inbox.',
    fix: 'Use an API key that is bound to no environment and no inbox.',
    extensions: { permission: 'suppressions:manage' },
  });
}

/** Those that apply to or originate in the credential's binding. */
function visibleTo(scope: Scope): FilterQuery<Suppression> {
  return {
    organizationId: scope.organizationId,
    ...(scope.environmentBound ? { environmentId: scope.environmentId } : {}),
    ...(scope.inboxId === undefined ? {} : { inboxId: scope.inboxId }),
  };
}
