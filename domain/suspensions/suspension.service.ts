import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, TenantScope, Transaction } from '../../platform/database/database.ts';
import { storableText } from '../../platform/database/storable.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import { setInboxStatus } from '../inboxes/inbox-status.ts';
import { setEnvironmentStatus, setOrganizationStatus } from '../organizations/set-status.ts';
import {
  type Suspension,
  type SuspensionActorKind,
  SuspensionEntity,
  type SuspensionReason,
  type SuspensionTargetType,
} from './suspension.entity.ts';
import { buildSuspensionStart } from './suspension-run.ts';

export interface SuspensionRequest {
  reason: SuspensionReason;
  note: string;
  actor: { kind: SuspensionActorKind; id: string };
}

export interface SuspensionChange {
  kind: 'suspended' | 'reinstated';
  suspension: Suspension;
  target: NamedTarget;
  /** Status of the target after the change: `suspended` if other suspensions of it are open. */
  status: 'active' | 'suspended';
}

export interface SuspensionServiceOptions {
  outbox: Pick<Outbox, 'enqueue'>;
  /** Notifies the owners, in the transaction of the change. */
  onChange(transaction: Transaction, change: SuspensionChange): Promise<void>;
}

export type SuspensionService = ReturnType<typeof createSuspensionService>;

/** Both changes run in the caller's transaction, which also audits them. */
export function createSuspensionService({ outbox, onChange }: SuspensionServiceOptions) {
  const finish = async (transaction: Transaction, change: SuspensionChange): Promise<SuspensionChange> => {
    const { suspension, target } = change;
    if (suspension.settledAt === null)
      outbox.enqueue(transaction, target.organizationId, { start: buildSuspensionStart(suspension) });
    await onChange(transaction, change);
    return change;
  };

  return {
    /**
     * Suspends the target. Accepted work waits; under `abuse`, a run that starts after the commit rejects it.
     *
     * @throws AppError `not_found`; `conflict` if it is already suspended for this reason.
     */
    async suspend(
      transaction: Transaction,
      requested: SuspensionTarget,
      request: SuspensionRequest,
    ): Promise<SuspensionChange> {
      const { db } = transaction;
      const target = await lockTarget(db, requested);
      const suspension = await insertSuspension(db, target, request);
      if (!suspension) throw alreadySuspended(target, request.reason);
      await setTargetStatus(db, target, 'suspended');
      return finish(transaction, { kind: 'suspended', suspension, target, status: 'suspended' });
    },

    /**
     * Lifts the suspension for this reason only. If it was the last one, a run releases the held work.
     *
     * @throws AppError `not_found`; `conflict` if it is not suspended for this reason.
     */
    async reinstate(
      transaction: Transaction,
      requested: SuspensionTarget,
      request: SuspensionRequest,
    ): Promise<SuspensionChange> {
      const { db } = transaction;
      const target = await lockTarget(db, requested);
      const suspension = await liftSuspension(db, target, request);
      const open = await findOpenReasons(db, target);
      if (!suspension) throw notSuspended(target, request.reason, open);
      const status = open.length === 0 ? 'active' : 'suspended';
      await setTargetStatus(db, target, status);
      return finish(transaction, { kind: 'reinstated', suspension, target, status });
    },
  };
}

/** The audit entry of a change. */
export function describeChange({ kind, target, suspension, status }: SuspensionChange, note: string) {
  return {
    action: `${target.type}.${kind}` as const,
    resourceType: target.type,
    resourceId: target.id,
    reason: note,
    details: { reason: suspension.reason, suspension_id: suspension.id, status },
  };
}

/**
 * Returns undefined if a suspension is already open for the reason. Only abuse affects work that was accepted before. Times
 * come from the clock, as in {@link liftSuspension}: `now()` is the start of the transaction, which may be earlier than the
 * previous change if the transaction waited for the lock.
 */
function insertSuspension(
  db: Db,
  { type, id, organizationId }: SuspensionTarget,
  { reason, note, actor }: SuspensionRequest,
): Promise<Suspension | undefined> {
  return db
    .insertInto('suspensions')
    .values({
      id: newId('suspension'),
      org_id: organizationId,
      target_type: type,
      target_id: id,
      reason,
      note: storableText(note),
      actor_kind: actor.kind,
      actor_id: actor.id,
      created_at: sql`clock_timestamp()`,
      changed_at: sql`clock_timestamp()`,
      settled_at: reason === 'abuse' ? null : new Date(),
    })
    .onConflict((conflict) =>
      conflict.columns(['target_id', 'reason']).where('lifted_at', 'is', null).doNothing(),
    )
    .returning(columnsOf(SuspensionEntity))
    .executeTakeFirst();
}

function liftSuspension(
  db: Db,
  { id }: SuspensionTarget,
  { reason, note, actor }: SuspensionRequest,
): Promise<Suspension | undefined> {
  const liftedAt = sql<Date>`greatest(clock_timestamp(), created_at)`;
  return db
    .updateTable('suspensions')
    .set({
      lifted_at: liftedAt,
      lifted_note: storableText(note),
      lifted_by_kind: actor.kind,
      lifted_by_id: actor.id,
      changed_at: liftedAt,
      settled_at: null,
      reconciled_at: null,
    })
    .where('target_id', '=', id)
    .where('reason', '=', reason)
    .where('lifted_at', 'is', null)
    .returning(columnsOf(SuspensionEntity))
    .executeTakeFirst();
}

async function findOpenReasons(db: Db, { id }: SuspensionTarget): Promise<SuspensionReason[]> {
  const rows = await db
    .selectFrom('suspensions')
    .select('reason')
    .where('target_id', '=', id)
    .where('lifted_at', 'is', null)
    .orderBy('reason')
    .execute();
  return rows.map(({ reason }) => reason);
}

export type ListOpenSuspensions = ReturnType<typeof createOpenSuspensionList>;
export type OpenSuspension = Awaited<ReturnType<ListOpenSuspensions>>[number];

export const createOpenSuspensionList =
  ({ database }: { database: Database }) =>
  /** Finds why the organization itself is suspended, oldest first; empty if it is not. */
  (scope: TenantScope) =>
    database.read(scope, ({ db }) =>
      db
        .selectFrom('suspensions')
        .select(['reason', 'created_at as since'])
        .where('org_id', '=', scope.organizationId)
        .where('target_id', '=', scope.organizationId)
        .where('lifted_at', 'is', null)
        .orderBy('created_at')
        .orderBy('id')
        .execute(),
    );

function alreadySuspended({ type, id }: SuspensionTarget, reason: SuspensionReason): AppError {
  return new AppError('conflict', {
    detail: `The ${type} ${id} is already suspended for ${reason}.`,
    fix: 'Nothing is left to do. Another reason can be added, and the reinstatement ends this suspension.',
  });
}

function notSuspended(
  { type, id }: SuspensionTarget,
  reason: SuspensionReason,
  open: readonly SuspensionReason[],
): AppError {
  return new AppError('conflict', {
    detail: `The ${type} ${id} is not suspended for ${reason}.`,
    fix:
      open.length === 0
        ? 'Nothing is left to do: it is not suspended.'
        : `Name the reason that is in force: ${open.join(', ')}.`,
    extensions: { open_reasons: open.join(',') },
  });
}

export interface SuspensionTarget {
  type: SuspensionTargetType;
  id: string;
  organizationId: string;
}

/** A target with its name, for emails. */
export interface NamedTarget extends SuspensionTarget {
  /** Name of the organization or environment, address of the inbox. */
  name: string;
}

/**
 * Locks the organization until the transaction ends, so that its suspensions change one at a time. Rows that refer to the
 * organization can still be inserted.
 *
 * @throws AppError `not_found`, also for a target of another organization and for a deleted inbox.
 */
async function lockTarget(db: Db, target: SuspensionTarget): Promise<NamedTarget> {
  await db
    .selectFrom('organizations')
    .select('id')
    .where('id', '=', target.organizationId)
    .forNoKeyUpdate()
    .execute();
  const row = await findName(db, target);
  if (!row) throw notFound(target.type, target.id);
  return { ...target, name: row.name };
}

function findName(
  db: Db,
  { type, id, organizationId }: SuspensionTarget,
): Promise<{ name: string } | undefined> {
  if (type === 'organization')
    return db
      .selectFrom('organizations')
      .select('name')
      .where('id', '=', id)
      .where('id', '=', organizationId)
      .executeTakeFirst();
  if (type === 'environment')
    return db
      .selectFrom('environments')
      .select('name')
      .where('id', '=', id)
      .where('org_id', '=', organizationId)
      .executeTakeFirst();
  return db
    .selectFrom('inboxes')
    .select('email as name')
    .where('id', '=', id)
    .where('org_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
}

/** The caller has locked the target and changed its suspensions. */
async function setTargetStatus(
  db: Db,
  { type, id }: SuspensionTarget,
  status: 'active' | 'suspended',
): Promise<void> {
  if (type === 'organization') await setOrganizationStatus(db, id, status);
  else if (type === 'environment') await setEnvironmentStatus(db, id, status);
  else await setInboxStatus(db, id, status);
}
