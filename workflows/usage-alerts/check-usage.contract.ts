/** Contract of the look at who nears or has reached a limit. Runs by schedule. */
export const CHECK_USAGE = 'checkUsage';
export const CHECK_USAGE_SCHEDULE_ID = 'check-usage';
export const CHECK_USAGE_EVERY_MS = 15 * 60_000;
