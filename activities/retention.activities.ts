import { Context } from '@temporalio/activity';
import { ApplicationFailure, ApplicationFailureCategory } from '@temporalio/common';
import type {
  DeletionProgress,
  DeletionSlice,
  ExpiredMailService,
} from '../domain/retention/expired-mail.service.ts';
import type { RetentionReview, RetentionService } from '../domain/retention/retention.service.ts';
import { DELETION_SLICE_MS } from '../workflows/retention/apply-retention.contract.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type RetentionActivities = ReturnType<typeof createRetentionActivities>;

/** With jitter, so that waiting deletions do not retry at the same time. */
const BUSY_RETRY_DELAY_MS = 5_000;
const BUSY_RETRY_JITTER_MS = 10_000;

export function createRetentionActivities({
  retention,
  expiredMail,
}: {
  retention: RetentionService;
  expiredMail: ExpiredMailService;
}) {
  return {
    reviewRetention: ({ organizationId }: { organizationId: string }): Promise<RetentionReview> =>
      withApplicationFailures(() => retention.review(organizationId)),

    /**
     * Deletes expired messages for a limited time. Heartbeats its progress; a retry continues from there. While this
     * worker deletes another organization's messages, the activity fails and is retried, which frees its slot.
     */
    deleteExpiredMail: ({
      organizationId,
      from,
    }: {
      organizationId: string;
      from: DeletionProgress;
    }): Promise<DeletionSlice> =>
      withApplicationFailures(async () => {
        const context = Context.current();
        const slice = await expiredMail.deleteExpired(organizationId, {
          from: (context.info.heartbeatDetails as DeletionProgress | undefined) ?? from,
          limitMs: DELETION_SLICE_MS,
          isAborted: () => context.cancellationSignal.aborted,
          onProgress: (progress) => context.heartbeat(progress),
        });
        context.cancellationSignal.throwIfAborted();
        if (slice) return slice;
        throw ApplicationFailure.create({
          type: 'DeletionInProgress',
          message: 'This worker is deleting another organization’s messages.',
          nextRetryDelay: BUSY_RETRY_DELAY_MS + Math.random() * BUSY_RETRY_JITTER_MS,
          // Expected: not an error.
          category: ApplicationFailureCategory.BENIGN,
        });
      }),

    postponeRetention: ({
      organizationId,
      days,
    }: {
      organizationId: string;
      days: number;
    }): Promise<string> => withApplicationFailures(() => retention.postpone(organizationId, days)),

    startRetentionRuns: (): Promise<number> =>
      withApplicationFailures(() => retention.startDailyRuns(() => heartbeatBetweenSteps())),
  };
}
