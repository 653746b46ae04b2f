/** Contract of the daily search for stored objects that no row refers to. Runs by schedule. */
export const FIND_ORPHANED_OBJECTS = 'findOrphanedObjects';
export const FIND_ORPHANED_OBJECTS_SCHEDULE_ID = 'find-orphaned-objects';
export const FIND_ORPHANED_OBJECTS_HOUR_UTC = 5;
