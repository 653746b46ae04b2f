import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import { storableText } from '../../platform/database/storable.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import type { Tier } from '../organizations/tier.ts';
import { UpgradeRequestEntity } from './upgrade-request.entity.ts';

export interface NewUpgradeRequest {
  tier: Tier;
  note: string;
}

export type UpgradeRequestService = ReturnType<typeof createUpgradeRequestService>;

/** @throws AppError `permission_denied` for a credential bound to an environment or inbox. */
export function createUpgradeRequestService({ database }: { database: Database }) {
  return {
    /**
     * @throws AppError `conflict` if the organization already has the tier; `already_exists` while another request is open.
     */
    create: (scope: Scope, { tier, note }: NewUpgradeRequest): Promise<RowOf<typeof UpgradeRequestEntity>> =>
      database.transaction(scope, async ({ db }) => {
        requireOrganizationWide(scope);
        const { organizationId, actor } = scope;
        const organization = await db
          .selectFrom('organizations')
          .select('tier')
          .where('id', '=', organizationId)
          .executeTakeFirst();
        const currentTier = organization?.tier ?? tier;
        if (currentTier === tier) throw tierInForce(tier);
        const created = await db
          .insertInto('upgrade_requests')
          .values({
            id: newId('upgradeRequest'),
            org_id: organizationId,
            tier,
            current_tier: currentTier,
            note: storableText(note),
            status: 'open',
            // Impersonations never hold the permission.
            requested_by_kind: actor.kind as 'user' | 'api_key',
            requested_by_id: actor.id,
          })
          .onConflict((conflict) => conflict.column('org_id').where('status', '=', 'open').doNothing())
          .returning(columnsOf(UpgradeRequestEntity))
          .executeTakeFirst();
        if (!created) throw openRequestExists();
        await recordAudit(db, scope, {
          action: 'upgrade_request.created',
          resourceType: 'upgrade_request',
          resourceId: created.id,
          details: { from: currentTier, to: tier },
        });
        return created;
      }),

    list: (scope: Scope, page: PageRequest) =>
      database.read(scope, ({ db }) => {
        requireOrganizationWide(scope);
        return findPage(
          db
            .selectFrom('upgrade_requests')
            .select(columnsOf(UpgradeRequestEntity))
            .where('org_id', '=', scope.organizationId),
          'upgrade_requests.id',
          page,
        );
      }),
  };
}

function tierInForce(tier: Tier): AppError {
  return new AppError('conflict', {
    detail: `The organization already has the tier ${tier}.`,
    fix: 'Ask for another tier than the present one: GET /api/v1/org/limits shows what it includes.',
  });
}

function openRequestExists(): AppError {
  return new AppError('already_exists', {
    detail: 'The organization has an open request.',
    fix: 'Wait for its decision: GET /api/v1/org/upgrade-requests.',
  });
}
