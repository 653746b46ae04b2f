import { createDomainActivities } from '../../activities/domains.activities.ts';
import { overdueDomains } from '../../domain/domains/overdue-domains.ts';
import { createVerificationService } from '../../domain/domains/verification.service.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerDependencies } from '../room.ts';

const verificationService = ({ database, services: { events, dns, dnsSettings } }: WorkerDependencies) =>
  createVerificationService({ database, events, dns, settings: dnsSettings });

export const domainsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: (dependencies) =>
      createDomainActivities({ verifications: verificationService(dependencies) }),
  },
  maintenance: (dependencies) => ({
    overdue: [overdueDomains(dependencies.database, verificationService(dependencies))],
  }),
};
