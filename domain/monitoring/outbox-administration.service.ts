import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import { notFound } from '../../platform/errors.ts';
import {
  countDeadCommands,
  type DeadCommand,
  listDeadCommands,
  MAX_RETRIED,
  retryDeadCommands,
} from '../../platform/outbox/dead-commands.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';

export interface RetriedCommands {
  retried: number;
  /** Given-up commands that are left. */
  left: number;
}

/** The commands for Temporal that are no longer tried. */
export interface OutboxAdministrationService {
  /** Oldest first. @param limit at most 1,000. */
  list(staff: StaffScope, limit: number): Promise<DeadCommand[]>;
  /**
   * Makes them due again, with all their attempts: the sweep delivers them within a minute.
   *
   * @param request.id one of them; undefined for the oldest 1,000.
   * @throws AppError `not_found` if the one was delivered meanwhile, or was never given up.
   */
  retry(staff: StaffScope, request: { id?: string; note: string }): Promise<RetriedCommands>;
}

export function createOutboxAdministrationService({
  database,
}: {
  database: Database;
}): OutboxAdministrationService {
  return {
    list: (staff, limit) => database.staffTransaction(staff, ({ em }) => listDeadCommands(em, limit)),

    retry: (staff, { id, note }) =>
      database.staffTransaction(staff, async ({ em }) => {
        const retried = await retryDeadCommands(em, id);
        if (id !== undefined && retried.length === 0) throw notFound('given-up command', id);
        if (retried.length > 0)
          await recordStaffAudit(em, staff, {
            action: 'outbox.retried',
            resourceType: 'outbox',
            resourceId: id ?? 'all',
            organizationIds: await findOrganizations(em, retried),
            reason: note,
            details: { commands: retried.length },
          });
        return { retried: retried.length, left: await countDeadCommands(em) };
      }),
  };
}

/** A command may also belong to a person or staff member, or to an organization that was purged. */
async function findOrganizations(
  em: EntityManager,
  commands: readonly { organizationId: string }[],
): Promise<string[]> {
  const ids = [...new Set(commands.map(({ organizationId }) => organizationId))];
  const rows = await em.execute<{ id: string }[]>(
    sql`select id from organizations where id in (${ids}) limit ${MAX_RETRIED}`,
  );
  return rows.map(({ id }) => id);
}
