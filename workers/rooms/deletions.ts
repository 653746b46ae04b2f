import { createDeletionActivities } from '../../activities/deletions.activities.ts';
import { createAccountPurge } from '../../domain/deletions/account-purge.ts';
import { createDeletionPurgeService } from '../../domain/deletions/deletion-purge.service.ts';
import { createOrganizationPurge } from '../../domain/deletions/organization-purge.ts';
import { overdueDeletions } from '../../domain/deletions/overdue-deletions.ts';
import { purgeReleasedAddresses } from '../../domain/inboxes/address-claims.ts';
import { purgeReleasedSlugs } from '../../domain/organizations/slug.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerDependencies } from '../room.ts';

const purgeService = ({ database, services }: WorkerDependencies) =>
  createDeletionPurgeService({
    database,
    notifications: services.notifications,
    personNotifications: services.personNotifications,
  });

export const deletionsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: (dependencies) =>
      createDeletionActivities({
        purges: purgeService(dependencies),
        accounts: createAccountPurge(dependencies),
        organizations: createOrganizationPurge(dependencies),
      }),
  },
  maintenance: (dependencies) => ({
    overdue: [overdueDeletions(dependencies.database, purgeService(dependencies))],
    sweeps: {
      releasedAddresses: () => purgeReleasedAddresses(dependencies.database),
      releasedSlugs: () => purgeReleasedSlugs(dependencies.database),
    },
  }),
};
