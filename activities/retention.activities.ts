import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type {
  DeletionProgress,
  ExpiredMailService,
  Stretch,
} from '../domain/retention/expired-mail.service.ts';
import type { RetentionReview, RetentionService } from '../domain/retention/retention.service.ts';
import { DELETION_STRETCH_MS } from '../workflows/retention/apply-retention.contract.ts';
import { asFailure } from './failures.ts';

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;

/** Those who wait for their turn do not all come back at once. */
const TURN_MS = 5_000;
const TURN_SPREAD_MS = 10_000;

export function createRetentionActivities({
  retention,
  expiredMail,
}: {
  retention: RetentionService;
  expiredMail: ExpiredMailService;
}) {
  return {
    reviewRetention: ({ organizationId }: { organizationId: string }): Promise<RetentionReview> =>
      asFailure(() => retention.review(organizationId)),

    /**
     * A stretch of deletion. Its heartbeats say how far it came, so that whoever takes it over after a crash goes on
     * there; while another organization's is under way it waits for its turn in Temporal, not in the worker.
     */
    deleteExpiredMail: ({
      organizationId,
      from,
    }: {
      organizationId: string;
      from: DeletionProgress;
    }): Promise<Stretch> =>
      asFailure(async () => {
        const context = Context.current();
        const stretch = await expiredMail.deleteExpired(organizationId, {
          from: (context.info.heartbeatDetails as DeletionProgress | undefined) ?? from,
          limitMs: DELETION_STRETCH_MS,
          aborted: () => context.cancellationSignal.aborted,
          progressed: (soFar) => context.heartbeat(soFar),
        });
        context.cancellationSignal.throwIfAborted();
        if (stretch) return stretch;
        throw ApplicationFailure.create({
          type: 'WaitsForItsTurn',
          message: 'Another organization’s mail is being deleted.',
          nextRetryDelay: TURN_MS + Math.random() * TURN_SPREAD_MS,
          // Nothing went wrong.
          category: ApplicationFailureCategory.BENIGN,
        });
      }),

    postponeRetention: ({
      organizationId,
      days,
    }: {
      organizationId: string;
      days: number;
    }): Promise<string> => asFailure(() => retention.postpone(organizationId, days)),

    startDueRetention: (): Promise<number> =>
      asFailure(() => retention.startDue(() => Context.current().heartbeat())),
  };
}
