import { purgeOauthTransactions } from '../../domain/oauth/oauth-transactions.ts';
import type { Room } from '../room.ts';

export const oauthRoom: Room = {
  maintenance: ({ database }) => ({
    sweeps: { expiredOauthTransactions: () => purgeOauthTransactions(database) },
  }),
};
