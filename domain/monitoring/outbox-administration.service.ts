import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
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
  /** Given-up commands that remain. */
  left: number;
}

export type OutboxAdministrationService = ReturnType<typeof createOutboxAdministrationService>;

/** Commands for Temporal that are no longer attempted. */
export function createOutboxAdministrationService({ database }: { database: Database }) {
  return {
    /** Oldest first. @param limit at most 1,000. */
    list: (staff: StaffScope, limit: number): Promise<DeadCommand[]> =>
      database.staffTransaction(staff, ({ db }) => listDeadCommands(db, limit)),

    /**
     * Makes given-up commands due again, with all attempts. The sweep delivers them within a minute.
     *
     * @param request.id one command; undefined for the oldest 1,000.
     * @throws AppError `not_found` if the command was delivered meanwhile, or was never given up.
     */
    retry: (staff: StaffScope, { id, note }: { id?: string; note: string }): Promise<RetriedCommands> =>
      database.staffTransaction(staff, async ({ db }) => {
        const retried = await retryDeadCommands(db, id);
        if (id !== undefined && retried.length === 0) throw notFound('given-up command', id);
        if (retried.length > 0)
          await recordStaffAudit(db, staff, {
            action: 'outbox.retried',
            resourceType: 'outbox',
            resourceId: id ?? 'all',
            organizationIds: await findOrganizations(db, retried),
            reason: note,
            details: { commands: retried.length },
          });
        return { retried: retried.length, left: await countDeadCommands(db) };
      }),
  };
}

/** A command may also belong to a person or staff member, or to an organization that was purged. */
async function findOrganizations(db: Db, commands: readonly { organizationId: string }[]): Promise<string[]> {
  const ids = [...new Set(commands.map(({ organizationId }) => organizationId))];
  const rows = await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', anyOf(ids))
    .limit(MAX_RETRIED)
    .execute();
  return rows.map(({ id }) => id);
}
