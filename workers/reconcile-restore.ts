import { parseArgs } from 'node:util';
import { reconcileRestore } from '../domain/restores/reconcile-restore.ts';
import { loadConfig } from '../platform/config.ts';
import { checkInstallation } from '../platform/installation/check-installation.ts';
import { InstallationError } from '../platform/installation/installation-error.ts';
import { createLogger } from '../platform/logger.ts';
import { createWorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { compose } from './composition.ts';
import { runCommand } from './run-command.ts';

const USAGE = `npm run restore:reconcile -- --restored-to TIME [--nothing-lost] [--storage-restored] [--temporal-intact] [--keep-schedules]
  --restored-to       time of the backup, for example 2026-11-22T10:00:00Z
  --nothing-lost      the service was stopped at that time, and nothing was sent since
  --storage-restored  the bucket was restored, too, or is a copy: it may lack what was sent since
  --temporal-intact   Temporal was neither lost nor restored: its histories are complete
  --keep-schedules    keep drafts that are scheduled for the future, although one may have been sent by hand since
`;

/** `npm run restore:reconcile`: see docs/backup.md. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      'restored-to': { type: 'string' },
      'nothing-lost': { type: 'boolean', default: false },
      'storage-restored': { type: 'boolean', default: false },
      'temporal-intact': { type: 'boolean', default: false },
      'keep-schedules': { type: 'boolean', default: false },
    },
  });
  const restoredTo = new Date(values['restored-to'] ?? '');
  if (Number.isNaN(restoredTo.getTime()))
    throw new InstallationError(`the time of the backup is missing\n${USAGE}`);
  if (restoredTo > new Date()) throw new InstallationError('the time of the backup is in the future');
  const config = loadConfig();
  const logger = createLogger(config, 'restore-reconcile');
  const composition = await compose(config, logger, []);
  const { database, storage, outbox, temporal, services } = composition;
  try {
    await checkInstallation(database, config, logger);
    const counts = await reconcileRestore(
      {
        database,
        storage,
        outbox,
        temporal,
        outcomes: services.outcomes,
        workflows: createWorkflowGateway(temporal),
      },
      {
        restoredTo,
        isNothingLost: values['nothing-lost'],
        isStorageComplete: !values['storage-restored'],
        isTemporalComplete: values['temporal-intact'],
        keepsFutureSchedules: values['keep-schedules'],
      },
    );
    process.stdout.write(`${JSON.stringify(counts, null, 2)}\nWorkers take work again.\n`);
  } finally {
    await composition.close();
  }
}

if (import.meta.main) runCommand('restore:reconcile', main);
