/** Contract of the sweep that finds what a crash or an operator left unfinished. Runs every minute by schedule. */
export const RECONCILE = 'reconcile';
export const RECONCILE_SCHEDULE_ID = 'reconcile';
export const RECONCILE_EVERY_MS = 60_000;
