import { Context } from '@temporalio/activity';
import type { UsageCheckProgress, UsageCheckService } from '../domain/usage-alerts/usage-check.service.ts';
import { asFailure } from './failures.ts';

export type UsageActivities = ReturnType<typeof createUsageActivities>;

export function createUsageActivities({ usageChecks }: { usageChecks: UsageCheckService }) {
  return {
    /** Its heartbeats say how far it came, so that a repeat goes on there. */
    tellOfThresholds: (): Promise<Record<string, number>> =>
      asFailure(async () => {
        const context = Context.current();
        const from = context.info.heartbeatDetails as UsageCheckProgress | undefined;
        const {
          organizations,
          told,
          failed = 0,
        } = await usageChecks.check({
          ...(from ? { from } : {}),
          progressed: (soFar) => context.heartbeat(soFar),
        });
        return { organizations, told, failed };
      }),
  };
}
