import type { Transaction } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { recordAudit } from '../audit/record-audit.ts';
import {
  describeChange,
  type SuspensionChange,
  type SuspensionRequest,
  type SuspensionService,
} from './suspension.service.ts';

export type SystemSuspensionRequest = Pick<SuspensionRequest, 'reason' | 'note'>;

export type SystemSuspensionService = ReturnType<typeof createSystemSuspensionService>;

/**
 * Suspends organizations automatically, for an overdue payment. Both changes run in the caller's transaction, and can be
 * repeated.
 */
export function createSystemSuspensionService({ suspensions }: { suspensions: SuspensionService }) {
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
      transaction.db,
      { organizationId, actor, requestId: transaction.requestId ?? newId('request') },
      describeChange(changed, request.note),
    );
    return true;
  };
  return {
    /** @returns false if the organization is already suspended for this reason. @throws AppError `not_found`. */
    suspend: (
      transaction: Transaction,
      organizationId: string,
      request: SystemSuspensionRequest,
    ): Promise<boolean> => change('suspend', transaction, { organizationId, ...request }),
    /**
     * Lifts only the suspension for this reason: a payment never ends a suspension for abuse.
     *
     * @returns false if the organization is not suspended for this reason. @throws AppError `not_found`.
     */
    reinstate: (
      transaction: Transaction,
      organizationId: string,
      request: SystemSuspensionRequest,
    ): Promise<boolean> => change('reinstate', transaction, { organizationId, ...request }),
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
