/** Contract of the daily start of `applyRetention` for every organization with something to do. Runs by schedule. */
export const START_RETENTION = 'startRetention';
export const START_RETENTION_SCHEDULE_ID = 'start-retention';
/** UTC. */
export const RETENTION_HOUR = 3;
