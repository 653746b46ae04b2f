import { notifyExpiringKeys } from '../../domain/people/notify-expiring-keys.ts';
import { purgeSignIns } from '../../domain/people/purge-sign-ins.ts';
import type { Room } from '../room.ts';

export const peopleRoom: Room = {
  maintenance: ({ database, services: { notifications, personNotifications } }) => ({
    sweeps: {
      expiringKeys: () => notifyExpiringKeys({ database, notifications, personNotifications }),
      expiredSignIns: () => purgeSignIns(database),
    },
  }),
};
