/** Contract of the scheduled check for organizations that are near or at a limit. */
export const CHECK_USAGE = 'checkUsage';
export const CHECK_USAGE_SCHEDULE_ID = 'check-usage';
export const CHECK_USAGE_INTERVAL_MS = 15 * 60_000;
