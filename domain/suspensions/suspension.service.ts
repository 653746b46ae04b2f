import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { queryRows, type Row } from '../../platform/database/find-rows.ts';
import { storableText } from '../../platform/database/storable.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import {
  type Suspension,
  type SuspensionActorKind,
  SuspensionEntity,
  type SuspensionReason,
} from './suspension.entity.ts';
import { buildSuspensionStart } from './suspension-start.ts';
import { lockTarget, type NamedTarget, type SuspensionTarget, setTargetStatus } from './suspension-target.ts';

export interface SuspensionRequest {
  reason: SuspensionReason;
  note: string;
  actor: { kind: SuspensionActorKind; id: string };
}

export interface SuspensionChange {
  kind: 'suspended' | 'reinstated';
  suspension: Row<Suspension>;
  target: NamedTarget;
  /** Status of the target after the change: `suspended` if other suspensions of it are open. */
  status: 'active' | 'suspended';
}

/** Both run in the caller's transaction, which also audits the change. */
export interface SuspensionService {
  /**
   * Suspends the target. What it has accepted waits; under `abuse` it is rejected by a run that starts after the commit.
   *
   * @throws AppError `not_found`; `conflict` if it is suspended for this reason already.
   */
  suspend(
    transaction: Transaction,
    target: SuspensionTarget,
    request: SuspensionRequest,
  ): Promise<SuspensionChange>;
  /**
   * Lifts the suspension for this reason, and no other. With the last one, a run releases what was held.
   *
   * @throws AppError `not_found`; `conflict` if it is not suspended for this reason.
   */
  reinstate(
    transaction: Transaction,
    target: SuspensionTarget,
    request: SuspensionRequest,
  ): Promise<SuspensionChange>;
}

export interface SuspensionServiceOptions {
  outbox: Pick<Outbox, 'enqueue'>;
  /** Notifies the owners, in the transaction of the change. */
  onChange(transaction: Transaction, change: SuspensionChange): Promise<void>;
}

export function createSuspensionService({ outbox, onChange }: SuspensionServiceOptions): SuspensionService {
  const finish = async (transaction: Transaction, change: SuspensionChange): Promise<SuspensionChange> => {
    const { suspension, target } = change;
    if (suspension.settledAt === null)
      outbox.enqueue(transaction, target.organizationId, { start: buildSuspensionStart(suspension) });
    await onChange(transaction, change);
    return change;
  };

  return {
    async suspend(transaction, requested, request) {
      const { em } = transaction;
      const target = await lockTarget(em, requested);
      const suspension = await insertSuspension(em, target, request);
      if (!suspension) throw alreadySuspended(target, request.reason);
      await setTargetStatus(em, target, 'suspended');
      return finish(transaction, { kind: 'suspended', suspension, target, status: 'suspended' });
    },

    async reinstate(transaction, requested, request) {
      const { em } = transaction;
      const target = await lockTarget(em, requested);
      const suspension = await liftSuspension(em, target, request);
      const open = await findOpenReasons(em, target);
      if (!suspension) throw notSuspended(target, request.reason, open);
      const status = open.length === 0 ? 'active' : 'suspended';
      await setTargetStatus(em, target, status);
      return finish(transaction, { kind: 'reinstated', suspension, target, status });
    },
  };
}

/**
 * Returns undefined if one is open for the reason. Only abuse concerns work that was accepted before. The times are of the
 * clock, as in {@link liftSuspension}: `now()` is the start of the transaction, which may have waited for the lock while the
 * change before it was made.
 */
async function insertSuspension(
  em: EntityManager,
  { type, id, organizationId }: SuspensionTarget,
  { reason, note, actor }: SuspensionRequest,
): Promise<Row<Suspension> | undefined> {
  const [row] = await queryRows(
    em,
    SuspensionEntity,
    (columns) => sql`
    insert into suspensions (id, org_id, target_type, target_id, reason, note, actor_kind, actor_id, created_at, changed_at,
      settled_at)
    values (${newId('suspension')}, ${organizationId}, ${type}, ${id}, ${reason}, ${storableText(note)}, ${actor.kind},
      ${actor.id}, clock_timestamp(), clock_timestamp(), ${reason === 'abuse' ? null : new Date()})
    on conflict (target_id, reason) where lifted_at is null do nothing returning ${columns}`,
  );
  return row;
}

async function liftSuspension(
  em: EntityManager,
  { id }: SuspensionTarget,
  { reason, note, actor }: SuspensionRequest,
): Promise<Row<Suspension> | undefined> {
  const [row] = await queryRows(
    em,
    SuspensionEntity,
    (columns) => sql`
    update suspensions set lifted_at = greatest(clock_timestamp(), created_at), lifted_note = ${storableText(note)},
      lifted_by_kind = ${actor.kind}, lifted_by_id = ${actor.id},
      changed_at = greatest(clock_timestamp(), created_at), settled_at = null, reconciled_at = null
    where target_id = ${id} and reason = ${reason} and lifted_at is null returning ${columns}`,
  );
  return row;
}

async function findOpenReasons(em: EntityManager, { id }: SuspensionTarget): Promise<SuspensionReason[]> {
  const rows = await em.execute<{ reason: SuspensionReason }[]>(sql`
    select reason from suspensions where target_id = ${id} and lifted_at is null order by reason`);
  return rows.map(({ reason }) => reason);
}

function alreadySuspended({ type, id }: SuspensionTarget, reason: SuspensionReason): AppError {
  return new AppError('conflict', {
    detail: `The ${type} ${id} is suspended for ${reason} already.`,
    fix: 'Nothing is left to do. To add another reason, name it; to end this suspension, POST to the reinstate path.',
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
