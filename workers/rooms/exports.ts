import { createExportActivities } from '../../activities/exports.activities.ts';
import { createExportRunner, createExportShares } from '../../domain/exports/export-runner.ts';
import { overdueExports } from '../../domain/exports/export-start.ts';
import { MAINTENANCE_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room, WorkerDependencies } from '../room.ts';

const exportRunner = ({ database, storage, services: { notifications } }: WorkerDependencies) =>
  createExportRunner({ database, storage, notifications });

export const exportsRoom: Room = {
  activities: {
    [MAINTENANCE_QUEUE]: (dependencies) =>
      createExportActivities({ exports: exportRunner(dependencies), shares: createExportShares() }),
  },
  maintenance(dependencies) {
    const runner = exportRunner(dependencies);
    return {
      overdue: [overdueExports(dependencies.database, runner)],
      sweeps: { expiredExports: () => runner.cleanUp() },
    };
  },
};
