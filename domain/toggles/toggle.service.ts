import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { findRows } from '../../platform/database/find-rows.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { buildReleaseStart, isHolding } from './release-start.ts';
import { type Toggle, ToggleEntity } from './toggle.entity.ts';
import { TOGGLE_NAMES, type ToggleName } from './toggle-names.ts';

export interface ToggleState {
  name: ToggleName;
  enabled: boolean;
  /** The last change; null if it has never been changed. */
  changed: Pick<Toggle, 'note' | 'changedBy' | 'changedAt'> | null;
}

export interface ToggleService {
  /** All toggles, in the order of {@link TOGGLE_NAMES}. */
  list(staff: StaffScope): Promise<ToggleState[]>;
  /**
   * Holds in every process with its next decision. Switching on what holds mail or deliveries starts the run that releases
   * them. Setting the value it has records the note, and repeats the release.
   */
  set(staff: StaffScope, name: ToggleName, change: { enabled: boolean; note: string }): Promise<ToggleState>;
}

export interface ToggleServiceOptions {
  database: Database;
  outbox: Outbox;
}

export function createToggleService({ database, outbox }: ToggleServiceOptions): ToggleService {
  return {
    list: (staff) =>
      database.staffTransaction(staff, async ({ em }) => {
        const rows = await findRows(em, ToggleEntity, { where: {} });
        return TOGGLE_NAMES.map((name) =>
          toState(
            name,
            rows.find((row) => row.name === name),
          ),
        );
      }),

    set: (staff, name, { enabled, note }) =>
      database.staffTransaction(staff, async (transaction) => {
        const { em } = transaction;
        const changedAt = new Date();
        const [previous] = await em.execute<{ enabled: boolean }[]>(
          sql`select enabled from toggles where name = ${name} for update`,
        );
        await em.execute(sql`
          insert into toggles (name, enabled, note, changed_by, changed_at)
          values (${name}, ${enabled}, ${note}, ${staff.staffId}, ${changedAt})
          on conflict (name) do update set enabled = excluded.enabled, note = excluded.note,
            changed_by = excluded.changed_by, changed_at = excluded.changed_at`);
        await recordStaffAudit(em, staff, {
          action: enabled ? 'toggle.switched_on' : 'toggle.switched_off',
          resourceType: 'toggle',
          resourceId: name,
          reason: note,
          details: { before: previous?.enabled ?? true, enabled },
        });
        if (enabled && isHolding(name))
          outbox.enqueue(transaction, name, { start: buildReleaseStart(name, changedAt) });
        return { name, enabled, changed: { note, changedBy: staff.staffId, changedAt } };
      }),
  };
}

function toState(name: ToggleName, row: Toggle | undefined): ToggleState {
  if (!row) return { name, enabled: true, changed: null };
  const { enabled, note, changedBy, changedAt } = row;
  return { name, enabled, changed: { note, changedBy, changedAt } };
}
