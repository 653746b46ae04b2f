import type { ExpressionBuilder } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { ChangeOf } from '../audit/audit-actions.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { isOrganizationWide, type Scope } from '../identity/scope.ts';
import { toAddressKey } from '../mime/mail-address.ts';
import { type Suppression, SuppressionEntity, type SuppressionOrigin } from './suppression.entity.ts';

export interface SuppressionFilter {
  email?: string;
  /** A part of the address, in any case. */
  search?: string;
  origin?: SuppressionOrigin;
}

export type SuppressionService = ReturnType<typeof createSuppressionService>;

/**
 * Addresses to which the organization, an environment or an inbox does not send. Bounces and complaints suppress an
 * address for the whole organization, a credential only for the environment or inbox it is bound to. A bound credential
 * sees only suppressions that originate there, because it must not learn the correspondents of other inboxes.
 */
export function createSuppressionService({ database }: { database: Database }) {
  return {
    list: (
      scope: Scope,
      { email, search, origin }: SuppressionFilter,
      page: PageRequest,
    ): Promise<Page<Suppression>> =>
      database.read(scope, ({ db }) => {
        const suppressions = db
          .selectFrom('suppressions')
          .select(columnsOf(SuppressionEntity))
          .where(isVisibleTo(scope))
          .$if(email !== undefined, (query) => query.where('email', '=', toAddressKey(email as string) ?? ''))
          .$if(search !== undefined, (query) =>
            query.where((eb) =>
              eb(eb.fn<number>('strpos', ['email', eb.val(search?.toLowerCase())]), '>', 0),
            ),
          )
          .$if(origin !== undefined, (query) => query.where('origin', '=', origin as SuppressionOrigin));
        return findPage(suppressions, 'suppressions.id', page);
      }),

    /**
     * Suppresses an address manually, for the organization or for the environment or inbox that the credential is bound
     * to. An existing suppression of that scope is kept.
     *
     * @throws AppError `validation_error`.
     */
    add: (scope: Scope, address: string): Promise<{ suppression: Suppression; created: boolean }> =>
      database.transaction(scope, async ({ db }) => {
        const email = toAddressKey(address);
        if (email === null)
          throw invalid('/body/email', 'is not an email address', 'Use one address of the form name@domain.');
        const { organizationId } = scope;
        const scopeId = scope.inboxId ?? (scope.environmentBound ? scope.environmentId : organizationId);
        const created = await db
          .insertInto('suppressions')
          .values({
            id: newId('suppression'),
            org_id: organizationId,
            scope_id: scopeId,
            email,
            origin: 'manual',
            env_id: scope.environmentBound ? scope.environmentId : null,
            inbox_id: scope.inboxId ?? null,
          })
          .onConflict((conflict) => conflict.columns(['org_id', 'email', 'scope_id']).doNothing())
          .returning(columnsOf(SuppressionEntity))
          .executeTakeFirst();
        if (!created)
          return {
            suppression: await findSuppression(db, { organizationId, email, scopeId }),
            created: false,
          };
        await audit(db, scope, { email, change: 'created' });
        return { suppression: created, created: true };
      }),

    /**
     * Removes the suppressions of the address that lie within the credential's binding; an organization-wide credential
     * removes all of them.
     *
     * @param reason why, for the audit log.
     * @throws AppError `not_found`; `permission_denied` if the only suppression is the organization's and the
     * credential is bound.
     */
    remove: (scope: Scope, address: string, reason?: string): Promise<void> =>
      database.transaction(scope, async ({ db }) => {
        const email = toAddressKey(address);
        if (email === null) throw notFound('suppression', address);
        const { numDeletedRows } = await db
          .deleteFrom('suppressions')
          .where('email', '=', email)
          .where(isVisibleTo(scope))
          .$if(!isOrganizationWide(scope), (query) => query.where('scope_id', '<>', scope.organizationId))
          .executeTakeFirst();
        if (numDeletedRows > 0n) return audit(db, scope, { email, change: 'removed', reason });
        const kept = await db
          .selectFrom('suppressions')
          .select('id')
          .where('email', '=', email)
          .where(isVisibleTo(scope))
          .limit(1)
          .executeTakeFirst();
        throw kept ? suppressedForOrganization() : notFound('suppression', address);
      }),
  };
}

/** Finds an existing suppression. */
function findSuppression(
  db: Db,
  { organizationId, email, scopeId }: Pick<Suppression, 'organizationId' | 'email' | 'scopeId'>,
): Promise<Suppression> {
  return db
    .selectFrom('suppressions')
    .select(columnsOf(SuppressionEntity))
    .where('org_id', '=', organizationId)
    .where('email', '=', email)
    .where('scope_id', '=', scopeId)
    .executeTakeFirstOrThrow(
      () =>
        new AppError('conflict', {
          detail: 'Another request removed the suppression at the same time.',
          fix: 'Repeat the request.',
        }),
    );
}

function audit(
  db: Db,
  scope: Scope,
  { email, change, reason }: { email: string; change: ChangeOf<'suppression'>; reason?: string | undefined },
): Promise<void> {
  return recordAudit(db, scope, {
    action: `suppression.${change}`,
    resourceType: 'suppression',
    resourceId: email,
    reason: reason ?? null,
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

/** Suppressions that apply to, or originate in, what the credential is bound to. */
const isVisibleTo =
  ({ organizationId, environmentBound, environmentId, inboxId }: Scope) =>
  (eb: ExpressionBuilder<Tables, 'suppressions'>) =>
    eb.and([
      eb('org_id', '=', organizationId),
      ...(environmentBound ? [eb('env_id', '=', environmentId)] : []),
      ...(inboxId === undefined ? [] : [eb('inbox_id', '=', inboxId)]),
    ]);
