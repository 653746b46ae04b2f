import { Context } from '@temporalio/activity';
import type { UsageCheckProgress, UsageCheckService } from '../domain/usage-alerts/usage-check.service.ts';
import { withApplicationFailures } from './failures.ts';
import { heartbeatBetweenSteps } from './heartbeats.ts';

export type UsageAlertActivities = ReturnType<typeof createUsageAlertActivities>;

export function createUsageAlertActivities({ usageChecks }: { usageChecks: UsageCheckService }) {
  return {
    /** Heartbeats its progress; a retry continues from there. */
    notifyThresholds: (): Promise<Record<string, number>> =>
      withApplicationFailures(async () => {
        const context = Context.current();
        const from = context.info.heartbeatDetails as UsageCheckProgress | undefined;
        const result = await usageChecks.check({
          ...(from ? { from } : {}),
          onProgress: heartbeatBetweenSteps,
        });
        const { organizations, notified, failed = 0 } = result;
        return { organizations, notified, failed };
      }),
  };
}
