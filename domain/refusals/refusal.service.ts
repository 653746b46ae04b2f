import type { FilterQuery } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { findInboxWithMail } from '../inboxes/find-inbox.ts';
import { type Refusal, type RefusalDirection, RefusalEntity, type RefusalReason } from './refusal.entity.ts';

export interface RefusalFilter {
  inboxId?: string | undefined;
  direction?: RefusalDirection | undefined;
  reason?: RefusalReason | undefined;
  /** Envelope sender, in any case. */
  from?: string | undefined;
  /** Refused recipient, in any case. */
  to?: string | undefined;
}

/** Mail that did not arrive because an SMTP listener refused it. */
export interface RefusalService {
  /**
   * A bound credential sees only refusals of its environment or inbox, and so not those of unknown addresses.
   *
   * @throws AppError `not_found` if the filter names an inbox outside the scope.
   */
  list(scope: Scope, filter: RefusalFilter, page: PageRequest): Promise<Page<Row<Refusal>>>;
}

export function createRefusalService({ database }: { database: Database }): RefusalService {
  return {
    list: (scope, { inboxId, direction, reason, from, to }, page) =>
      database.read(scope, async (reader) => {
        if (inboxId !== undefined) await findInboxWithMail(reader.db, scope, inboxId);
        const where: FilterQuery<Refusal>[] = [visibleTo(scope)];
        if (inboxId !== undefined) where.push({ inboxId });
        if (direction) where.push({ direction });
        if (reason) where.push({ reason });
        if (from !== undefined) where.push({ sender: from.toLowerCase() });
        if (to !== undefined) where.push({ recipient: to.toLowerCase() });
        return findPage(reader, RefusalEntity, { where, page });
      }),
  };
}

function visibleTo(scope: Scope): FilterQuery<Refusal> {
  return {
    organizationId: scope.organizationId,
    ...(scope.environmentBound || scope.environmentSelected ? { environmentId: scope.environmentId } : {}),
    ...(scope.inboxId === undefined ? {} : { inboxId: scope.inboxId }),
  };
}
