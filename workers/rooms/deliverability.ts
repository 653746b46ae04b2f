import { purgeReputationOutcomes } from '../../domain/deliverability/record-reputation.ts';
import type { Room } from '../room.ts';

export const deliverabilityRoom: Room = {
  maintenance: ({ database }) => ({
    sweeps: { expiredReputationOutcomes: () => purgeReputationOutcomes(database) },
  }),
};
