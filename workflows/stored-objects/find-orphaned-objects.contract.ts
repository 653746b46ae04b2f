/** Contract of the scheduled daily search for stored objects that no row refers to. */
export const FIND_ORPHANED_OBJECTS = 'findOrphanedObjects';
export const FIND_ORPHANED_OBJECTS_SCHEDULE_ID = 'find-orphaned-objects';
export const FIND_ORPHANED_OBJECTS_HOUR_UTC = 5;
