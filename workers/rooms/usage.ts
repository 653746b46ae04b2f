import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import { purgeUsage } from '../../domain/usage/usage-history.ts';
import type { Room } from '../room.ts';

export const usageRoom: Room = {
  maintenance: ({ database }) => ({
    sweeps: { usageDeltas: () => applyUsageDeltas(database), expiredUsage: () => purgeUsage(database) },
  }),
};
