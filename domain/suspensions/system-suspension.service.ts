import type { Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { SuspensionChange, SuspensionRequest, SuspensionService } from './suspension.service.ts';

export type SystemSuspensionRequest = Pick<SuspensionRequest, 'reason' | 'note'>;

/**
 * Suspends organizations without a staff member: for a payment that stays open. Both run in the caller's transaction, and
 * can be repeated.
 */
export interface SystemSuspensionService {
  /** @returns false if the organization is suspended for this reason already. @throws AppError `not_found`. */
  suspend(
    transaction: Transaction,
    organizationId: string,
    request: SystemSuspensionRequest,
  ): Promise<boolean>;
  /**
   * Lifts only the suspension for this reason: a payment never ends one for abuse.
   *
   * @returns false if the organization is not suspended for this reason. @throws AppError `not_found`.
   */
  reinstate(
    transaction: Transaction,
    organizationId: string,
    request: SystemSuspensionRequest,
  ): Promise<boolean>;
}

export function createSystemSuspensionService({
  suspensions,
}: {
  suspensions: SuspensionService;
}): SystemSuspensionService {
  const change = async (
    method: 'suspend' | 'reinstate',
    transaction: Transaction,
    { organizationId, ...request }: SystemSuspensionRequest & { organizationId: string },
  ): Promise<boolean> => {
    const actor = { kind: 'system' as const, id: organizationId };
    const target = { type: 'organization' as const, id: organizationId, organizationId };
    const changed = await unlessDone(suspensions[method](transaction, target, { ...request, actor }));
    if (!changed) return false;
    await recordAudit(
      transaction.em,
      { organizationId, actor, requestId: transaction.requestId ?? newId('request') },
      describeChange(changed, request.note),
    );
    return true;
  };
  return {
    suspend: (transaction, organizationId, request) =>
      change('suspend', transaction, { organizationId, ...request }),
    reinstate: (transaction, organizationId, request) =>
      change('reinstate', transaction, { organizationId, ...request }),
  };
}

/** The audit entry of a change. */
export function describeChange({ kind, target, suspension, status }: SuspensionChange, note: string) {
  return {
    action: `${target.type}.${kind}`,
    resourceType: target.type,
    resourceId: target.id,
    reason: note,
    details: { reason: suspension.reason, suspension_id: suspension.id, status },
  };
}

async function unlessDone(change: Promise<SuspensionChange>): Promise<SuspensionChange | undefined> {
  try {
    return await change;
  } catch (error) {
    if (error instanceof AppError && error.code === 'conflict') return undefined;
    throw error;
  }
}
