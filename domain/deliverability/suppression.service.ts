import type { FilterQuery } from '@mikro-orm/core';
import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { toAddressKey } from '../mime/address-key.ts';
import { type Suppression, SuppressionEntity, type SuppressionOrigin } from './suppression.entity.ts';

export interface SuppressionFilter {
  email?: string;
  origin?: SuppressionOrigin;
}

/**
 * Addresses to which no inbox of the organization sends. A credential bound to an environment or inbox sees only the
 * suppressions that originate there: it must not reveal the correspondents of other inboxes.
 */
export interface SuppressionService {
  list(scope: Scope, filter: SuppressionFilter, page: PageRequest): Promise<Page<Suppression>>;
  /**
   * Suppresses an address manually. An existing suppression is kept.
   *
   * @throws AppError `validation_error`; `already_exists` if the credential cannot access the existing suppression.
   */
  add(scope: Scope, email: string): Promise<{ suppression: Suppression; created: boolean }>;
  /** Allows sending to the address again. @throws AppError `not_found`. */
  remove(scope: Scope, email: string): Promise<void>;
}

export function createSuppressionService({ database }: { database: Database }): SuppressionService {
  return {
    list: (scope, filter, page) =>
      database.transaction(scope, ({ em }) => {
        const where: FilterQuery<Suppression>[] = [visibleTo(scope)];
        if (filter.email !== undefined) where.push({ email: toAddressKey(filter.email) ?? '' });
        if (filter.origin) where.push({ origin: filter.origin });
        return findPage(em, SuppressionEntity, { where, page });
      }),

    add: (scope, address) =>
      database.transaction(scope, async ({ em }) => {
        const email = toAddressKey(address);
        if (email === null)
          throw invalid('/body/email', 'is not an email address', 'Use one address of the form name@domain.');
        const { affectedRows } = await em.execute<{ affectedRows: number }>(
          sql`insert into suppressions (id, org_id, email, origin, env_id, inbox_id, created_at)
           values (${newId('suppression')}, ${scope.organizationId}, ${email}, 'manual',
             ${scope.environmentBound ? scope.environmentId : null}, ${scope.inboxId ?? null}, now())
           on conflict (org_id, email) do nothing`,
          [],
          'run',
        );
        const suppression = await em.findOne(SuppressionEntity, { $and: [{ email }, visibleTo(scope)] });
        if (suppression) return { suppression, created: affectedRows === 1 };
        throw new AppError('already_exists', {
          detail:
            'The organization already suppresses this address, but this credential cannot access the suppression.',
          fix: 'No action is needed. Use an organization-wide key to see the suppression.',
        });
      }),

    remove: (scope, address) =>
      database.transaction(scope, async ({ em }) => {
        const email = toAddressKey(address);
        const removed =
          email === null
            ? 0
            : await em.nativeDelete(SuppressionEntity, { $and: [{ email }, visibleTo(scope)] });
        if (removed === 0) throw notFound('suppression', address);
      }),
  };
}

function visibleTo(scope: Scope): FilterQuery<Suppression> {
  return {
    organizationId: scope.organizationId,
    ...(scope.environmentBound ? { environmentId: scope.environmentId } : {}),
    ...(scope.inboxId === undefined ? {} : { inboxId: scope.inboxId }),
  };
}
