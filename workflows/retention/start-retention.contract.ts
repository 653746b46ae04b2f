/** Contract of the scheduled daily start of `applyRetention` for every organization that needs it. */
export const START_RETENTION = 'startRetention';
export const START_RETENTION_SCHEDULE_ID = 'start-retention';
export const RETENTION_START_HOUR_UTC = 3;
