import { purgeSsoAssertions, purgeSsoAttempts, purgeSsoTransactions } from '../../domain/sso/sso-purges.ts';
import type { Room } from '../room.ts';

export const ssoRoom: Room = {
  maintenance: ({ database }) => ({
    sweeps: {
      expiredSsoTransactions: () => purgeSsoTransactions(database),
      expiredSsoAssertions: () => purgeSsoAssertions(database),
      expiredSsoAttempts: () => purgeSsoAttempts(database),
    },
  }),
};
