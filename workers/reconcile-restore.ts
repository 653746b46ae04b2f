import { parseArgs } from 'node:util';
import { reconcileRestore } from '../domain/restores/reconcile-restore.ts';
import { loadConfig } from '../platform/config.ts';
import { checkInstallation } from '../platform/installation/check-installation.ts';
import { InstallationError } from '../platform/installation/installation-error.ts';
import { createLogger } from '../platform/logger.ts';
import { createWorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { compose } from './composition.ts';
import { runCommand } from './run-command.ts';

const USAGE = `npm run restore:reconcile -- [--restored-to TIME] [--nothing-lost] [--storage intact|restored] [--temporal-intact] [--keep-schedules]
  --restored-to      time of the backup, for example 2026-11-22T10:00:00Z; npm run restore has recorded it
  --nothing-lost     the service was stopped at that time, and nothing was sent since
  --storage          whether the bucket is as the service left it, or was restored, too, or is a copy. npm run restore has
                     recorded it, unless it left the bucket alone; then restored is assumed
  --temporal-intact  Temporal was neither lost nor restored: its histories are complete
  --keep-schedules   keep drafts that are scheduled for the future, although one may have been sent by hand since
`;

/** `npm run restore:reconcile`: see docs/backup.md. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      'restored-to': { type: 'string' },
      'nothing-lost': { type: 'boolean', default: false },
      storage: { type: 'string' },
      'temporal-intact': { type: 'boolean', default: false },
      'keep-schedules': { type: 'boolean', default: false },
    },
  });
  const restoredTo = readTime(values['restored-to']);
  const storageState = readStorageState(values.storage);
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
        storage: storageState,
        isTemporalComplete: values['temporal-intact'],
        keepsFutureSchedules: values['keep-schedules'],
      },
    );
    process.stdout.write(`${JSON.stringify(counts, null, 2)}\nWorkers take work again.\n`);
  } finally {
    await composition.close();
  }
}

function readTime(value: string | undefined): Date | undefined {
  if (value === undefined) return undefined;
  const time = new Date(value);
  if (Number.isNaN(time.getTime()))
    throw new InstallationError(`--restored-to is not a time: ${value}\n${USAGE}`);
  if (time > new Date()) throw new InstallationError('the time of the backup is in the future');
  return time;
}

function readStorageState(value: string | undefined): 'intact' | 'restored' | undefined {
  if (value === undefined || value === 'intact' || value === 'restored') return value;
  throw new InstallationError(`--storage is neither intact nor restored: ${value}\n${USAGE}`);
}

if (import.meta.main) runCommand('restore:reconcile', main);
