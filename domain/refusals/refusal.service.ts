import { columnsOf, type RowOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import type { Scope } from '../identity/scope.ts';
import { findInboxWithMail } from '../inboxes/find-inbox.ts';
import { type RefusalDirection, RefusalEntity, type RefusalReason } from './refusal.entity.ts';

export interface RefusalFilter {
  inboxId?: string | undefined;
  direction?: RefusalDirection | undefined;
  reason?: RefusalReason | undefined;
  /** Envelope sender, in any case. */
  from?: string | undefined;
  /** Refused recipient, in any case. */
  to?: string | undefined;
}

export type RefusalService = ReturnType<typeof createRefusalService>;

/** Mail that did not arrive because an SMTP listener refused it. */
export function createRefusalService({ database }: { database: Database }) {
  return {
    /**
     * A bound credential sees only refusals of its environment or inbox, and so not those of unknown addresses.
     *
     * @throws AppError `not_found` if the filter names an inbox outside the scope.
     */
    list: (
      scope: Scope,
      filter: RefusalFilter,
      page: PageRequest,
    ): Promise<Page<RowOf<typeof RefusalEntity>>> =>
      database.read(scope, async ({ db }) => {
        if (filter.inboxId !== undefined) await findInboxWithMail(db, scope, filter.inboxId);
        return findPage(selectRefusals(db, scope, filter), 'refusals.id', page);
      }),
  };
}

function selectRefusals(db: Db, scope: Scope, { inboxId, direction, reason, from, to }: RefusalFilter) {
  const isBoundToEnvironment = scope.environmentBound || scope.environmentSelected;
  return db
    .selectFrom('refusals')
    .select(columnsOf(RefusalEntity))
    .where((eb) =>
      eb.and([
        eb('org_id', '=', scope.organizationId),
        ...(isBoundToEnvironment ? [eb('env_id', '=', scope.environmentId)] : []),
        ...(scope.inboxId === undefined ? [] : [eb('inbox_id', '=', scope.inboxId)]),
        ...(inboxId === undefined ? [] : [eb('inbox_id', '=', inboxId)]),
        ...(direction === undefined ? [] : [eb('direction', '=', direction)]),
        ...(reason === undefined ? [] : [eb('reason', '=', reason)]),
        ...(from === undefined ? [] : [eb('sender', '=', from.toLowerCase())]),
        ...(to === undefined ? [] : [eb('recipient', '=', to.toLowerCase())]),
      ]),
    );
}
