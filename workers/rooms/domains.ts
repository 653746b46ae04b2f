import { createDomainActivities } from '../../activities/domains.activities.ts';
import { overdueDomains } from '../../domain/domains/overdue-domains.ts';
import { createVerificationService } from '../../domain/domains/verification.service.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerParts } from '../room.ts';

const verificationService = ({ database, services: { events, dns, dnsSettings } }: WorkerParts) =>
  createVerificationService({ database, events, dns, settings: dnsSettings });

export const domainsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: (parts) => createDomainActivities({ verifications: verificationService(parts) }),
  },
  maintenance: (parts) => ({ overdue: [overdueDomains(parts.database, verificationService(parts))] }),
};
