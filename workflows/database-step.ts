import type { ActivityOptions } from '@temporalio/workflow';

/**
 * For activities that are one short database transaction. They are retried until the database is back: without it, nothing
 * else can be recorded. A failure with another cause ends after `MAX_DEFECT_ATTEMPTS` (`activities/failures.ts`).
 */
export const DATABASE_STEP = {
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
} satisfies ActivityOptions;
