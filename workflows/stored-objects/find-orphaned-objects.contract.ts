/** Contract of the daily search for objects of storage that nothing refers to. Runs by schedule. */
export const FIND_ORPHANED_OBJECTS = 'searchStrayObjects';
export const FIND_ORPHANED_OBJECTS_SCHEDULE_ID = 'search-stray-objects';
/** UTC. */
export const FIND_ORPHANED_OBJECTS_HOUR_UTC = 5;
