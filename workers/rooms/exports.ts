import { createExportActivities } from '../../activities/exports.activities.ts';
import { createExportRunner } from '../../domain/exports/export-runner.ts';
import { overdueExports } from '../../domain/exports/overdue-exports.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerParts } from '../room.ts';

const exportRunner = ({ database, storage, services: { notifications } }: WorkerParts) =>
  createExportRunner({ database, storage, notifications });

export const exportsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: (parts) => createExportActivities({ exports: exportRunner(parts) }),
  },
  maintenance(parts) {
    const runner = exportRunner(parts);
    return {
      overdue: [overdueExports(parts.database, runner)],
      sweeps: { expiredExports: () => runner.cleanUp() },
    };
  },
};
