import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import {
  type HoldingToggle,
  RELEASE_HELD,
  releaseHeldWorkflowId,
} from '../../workflows/toggles/release-held.contract.ts';
import { recordStaffAudit } from '../staff/record-staff-audit.ts';
import type { StaffScope } from '../staff/staff-scope.ts';
import { type Toggle, ToggleEntity } from './toggle.entity.ts';
import { TOGGLE_NAMES, type ToggleName } from './toggles.ts';

export interface ToggleState {
  name: ToggleName;
  enabled: boolean;
  /** The last change; null if it has never been changed. */
  changed: Pick<Toggle, 'note' | 'changedBy' | 'changedAt'> | null;
}

export type ToggleService = ReturnType<typeof createToggleService>;

export function createToggleService({ database, outbox }: { database: Database; outbox: Outbox }) {
  return {
    /** All toggles, in the order of {@link TOGGLE_NAMES}. */
    list: (staff: StaffScope): Promise<ToggleState[]> =>
      database.staffTransaction(staff, async ({ db }) => {
        const rows = await db.selectFrom('toggles').select(columnsOf(ToggleEntity)).execute();
        const byName = new Map(rows.map((row) => [row.name, row]));
        return TOGGLE_NAMES.map((name) => toState(name, byName.get(name)));
      }),

    /**
     * Takes effect in every process with its next decision. Switching on a toggle that holds mail or deliveries starts the
     * run that releases them. Setting the present value records the note and repeats the release.
     */
    set: (
      staff: StaffScope,
      name: ToggleName,
      { enabled, note }: { enabled: boolean; note: string },
    ): Promise<ToggleState> =>
      database.staffTransaction(staff, async (transaction) => {
        const { db } = transaction;
        const changed = { note, changedBy: staff.staffId, changedAt: new Date() };
        const wasEnabled = await lockEnabled(db, name);
        await upsertToggle(db, { name, enabled, ...changed });
        await recordStaffAudit(db, staff, {
          action: enabled ? 'toggle.switched_on' : 'toggle.switched_off',
          resourceType: 'toggle',
          resourceId: name,
          reason: note,
          details: { before: wasEnabled, enabled },
        });
        if (enabled && isHolding(name))
          outbox.enqueue(transaction, name, { start: buildReleaseStart(name, changed.changedAt) });
        return { name, enabled, changed };
      }),
  };
}

/** A toggle without a row is on. */
async function lockEnabled(db: Db, name: ToggleName): Promise<boolean> {
  const row = await db
    .selectFrom('toggles')
    .select('enabled')
    .where('name', '=', name)
    .forUpdate()
    .executeTakeFirst();
  return row?.enabled ?? true;
}

async function upsertToggle(db: Db, { name, enabled, note, changedBy, changedAt }: Toggle): Promise<void> {
  const change = { enabled, note, changed_by: changedBy, changed_at: changedAt };
  await db
    .insertInto('toggles')
    .values({ name, ...change })
    .onConflict((conflict) => conflict.column('name').doUpdateSet(change))
    .execute();
}

function toState(name: ToggleName, row: Toggle | undefined): ToggleState {
  if (!row) return { name, enabled: true, changed: null };
  const { enabled, note, changedBy, changedAt } = row;
  return { name, enabled, changed: { note, changedBy, changedAt } };
}

const HOLDING_TOGGLES: readonly ToggleName[] = ['sending', 'webhook_deliveries'] satisfies HoldingToggle[];

/** Whether the toggle holds something while it is off. */
const isHolding = (name: ToggleName): name is HoldingToggle => HOLDING_TOGGLES.includes(name);

function buildReleaseStart(toggle: HoldingToggle, changedAt: Date): StartCommand {
  return {
    workflowType: RELEASE_HELD,
    workflowId: releaseHeldWorkflowId(toggle, changedAt.getTime()),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.urgent, fairnessKey: toggle },
    input: { toggle },
    searchAttributes: { ResourceId: toggle, Stage: 'releasing' },
    summary: `Release what was held while ${toggle} was off`,
  };
}
