import { deleteExpiredRequests } from '../../domain/requests/delete-requests.ts';
import type { Room } from '../room.ts';

export const requestsRoom: Room = {
  maintenance: ({ database }) => ({
    sweeps: { expiredRequests: () => deleteExpiredRequests(database) },
  }),
};
