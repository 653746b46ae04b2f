import { purgeEvents } from '../../domain/events/purge-events.ts';
import type { Room } from '../room.ts';

export const eventsRoom: Room = {
  maintenance: ({ config, database }) => ({
    sweeps: { expiredEvents: () => purgeEvents(database, config.EVENT_RETENTION_DAYS) },
  }),
};
