import { createDraftActivities } from '../../activities/drafts.activities.ts';
import { releaseAllHeldDrafts } from '../../domain/drafts/held-drafts.ts';
import { overdueDrafts } from '../../domain/drafts/overdue-drafts.ts';
import { OUTBOUND_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const draftsRoom: Room = {
  activities: {
    [OUTBOUND_QUEUE]: ({ services: { drafts } }) => createDraftActivities({ drafts }),
  },
  maintenance: ({ database, outbox, services: { drafts } }) => ({
    overdue: [overdueDrafts(database, drafts)],
    sweeps: { releasedDrafts: () => releaseAllHeldDrafts(database, outbox) },
  }),
};
