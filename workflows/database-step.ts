import type { ActivityOptions } from '@temporalio/workflow';

/** For activities that are one short database transaction. They are retried until the database is back. */
export const DATABASE_STEP = {
  startToCloseTimeout: '30 seconds',
  retry: { initialInterval: '1 second', maximumInterval: '1 minute' },
} satisfies ActivityOptions;
