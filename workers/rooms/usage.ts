import { foldUsage } from '../../domain/usage/fold-deltas.ts';
import { purgeUsage } from '../../domain/usage/purge-usage.ts';
import type { Room } from '../room.ts';

export const usageRoom: Room = {
  maintenance: ({ database }) => ({
    sweeps: { usageDeltas: () => foldUsage(database), expiredUsage: () => purgeUsage(database) },
  }),
};
