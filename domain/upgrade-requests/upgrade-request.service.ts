import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import { queryRows, type Row } from '../../platform/database/find-rows.ts';
import { storableText } from '../../platform/database/storable.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { requireOrganizationWide, type Scope } from '../identity/scope.ts';
import type { Tier } from '../organizations/tier.ts';
import { type UpgradeRequest, UpgradeRequestEntity } from './upgrade-request.entity.ts';

export interface NewUpgradeRequest {
  tier: Tier;
  note: string;
}

export interface UpgradeRequestService {
  /**
   * @throws AppError `conflict` if the organization has the tier; `already_exists` while another request is open;
   * `permission_denied` for a credential bound to an environment or inbox.
   */
  create(scope: Scope, request: NewUpgradeRequest): Promise<Row<UpgradeRequest>>;
  list(scope: Scope, page: PageRequest): Promise<Page<Row<UpgradeRequest>>>;
}

export function createUpgradeRequestService({ database }: { database: Database }): UpgradeRequestService {
  return {
    create: (scope, { tier, note }) =>
      database.transaction(scope, async ({ em }) => {
        requireOrganizationWide(scope);
        const { organizationId, actor } = scope;
        const [organization] = await em.execute<{ tier: Tier }[]>(
          sql`select tier from organizations where id = ${organizationId}`,
        );
        const currentTier = organization?.tier ?? tier;
        if (currentTier === tier) throw tierInForce(tier);
        const [created] = await queryRows(
          em,
          UpgradeRequestEntity,
          (columns) => sql`
          insert into upgrade_requests (id, org_id, tier, current_tier, note, status, requested_by_kind, requested_by_id,
            created_at)
          values (${newId('upgradeRequest')}, ${organizationId}, ${tier}, ${currentTier}, ${storableText(note)}, 'open',
            ${actor.kind}, ${actor.id}, now())
          on conflict (org_id) where status = 'open' do nothing returning ${columns}`,
        );
        if (!created) throw openRequestExists();
        await recordAudit(em, scope, {
          action: 'upgrade_request.created',
          resourceType: 'upgrade_request',
          resourceId: created.id,
          details: { from: currentTier, to: tier },
        });
        return created;
      }),

    list: (scope, page) =>
      database.read(scope, (reader) => {
        requireOrganizationWide(scope);
        return findPage(reader, UpgradeRequestEntity, {
          where: { organizationId: scope.organizationId },
          page,
        });
      }),
  };
}

function tierInForce(tier: Tier): AppError {
  return new AppError('conflict', {
    detail: `The organization has the tier ${tier} already.`,
    fix: 'Ask for another tier; GET /api/v1/org/limits shows what this one includes.',
  });
}

function openRequestExists(): AppError {
  return new AppError('already_exists', {
    detail: 'The organization has an open request.',
    fix: 'Wait for its decision: GET /api/v1/org/upgrade-requests.',
  });
}
