import { settleImpersonations } from '../../domain/impersonation/report-end.ts';
import type { Room } from '../room.ts';

export const impersonationRoom: Room = {
  maintenance: ({ database }) => ({
    sweeps: { endedImpersonations: () => settleImpersonations(database) },
  }),
};
