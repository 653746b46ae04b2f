/** Contract of the daily search for objects of storage that nothing refers to. Runs by schedule. */
export const SEARCH_STRAY_OBJECTS = 'searchStrayObjects';
export const SEARCH_STRAY_OBJECTS_SCHEDULE_ID = 'search-stray-objects';
/** UTC. */
export const SEARCH_STRAY_OBJECTS_HOUR = 5;
