import { purgeConnections } from '../../domain/connections/purge-connections.ts';
import type { Room } from '../room.ts';

export const connectionsRoom: Room = {
  maintenance: ({ database }) => ({
    sweeps: { endedConnections: () => purgeConnections(database) },
  }),
};
