import type { Transaction } from '../../platform/database/database.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { StartCommand } from '../../platform/outbox/outbox-command.ts';
import {
  CHECK_NOW,
  nextCheckDelayMs,
  VERIFY_DOMAIN,
  verifyDomainWorkflowId,
} from '../../workflows/domains/verify-domain.contract.ts';
import { MAINTENANCE_QUEUE, PRIORITY } from '../../workflows/task-queues.contract.ts';
import type { Domain } from './domain.entity.ts';

type VerificationRun = Pick<Domain, 'id' | 'organizationId' | 'generation'>;

/** Also used by the reconciler when the run of a series is missing. */
export function buildVerificationStart({ id, organizationId, generation }: VerificationRun): StartCommand {
  return {
    workflowType: VERIFY_DOMAIN,
    workflowId: verifyDomainWorkflowId(id, generation),
    taskQueue: MAINTENANCE_QUEUE,
    priority: { priorityKey: PRIORITY.default, fairnessKey: organizationId },
    input: { domainId: id, generation },
    searchAttributes: { OrgId: organizationId, ResourceId: id, Stage: 'pending' },
    summary: `Verify domain ${id}`,
  };
}

/** When a series makes its first check. */
export const firstCheckAt = (startedAt: Date): Date => new Date(startedAt.getTime() + nextCheckDelayMs(0));

/** Starts a new series of DNS checks after the commit. The caller saves the domain. */
export function startVerification(transaction: Transaction, outbox: Outbox, domain: Domain, now: Date): void {
  domain.generationStartedAt = now;
  domain.nextCheckAt = firstCheckAt(now);
  outbox.enqueue(transaction, domain.organizationId, { start: buildVerificationStart(domain) });
}

/** Makes the run re-read its row. Has no effect if the run has ended. */
export function signalCheckNow(transaction: Transaction, outbox: Outbox, domain: VerificationRun): void {
  outbox.enqueue(transaction, domain.organizationId, {
    signal: {
      workflowId: verifyDomainWorkflowId(domain.id, domain.generation),
      signalName: CHECK_NOW,
      args: [],
    },
  });
}
