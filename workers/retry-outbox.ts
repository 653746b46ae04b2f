import { parseArgs } from 'node:util';
import { listDeadCommands, retryDeadCommands } from '../platform/outbox/dead-commands.ts';
import { runCommand } from './run-command.ts';
import { runOutboxCommand } from './run-outbox-command.ts';

/**
 * `npm run outbox:retry [-- --id ID] [-- --list]`: retries the commands whose delivery to Temporal failed permanently, or lists
 * them with their last error.
 */
runCommand('outbox:retry', () => {
  const { id, list } = parseArgs({ options: { id: { type: 'string' }, list: { type: 'boolean' } } }).values;
  return runOutboxCommand(async ({ database, outbox }) => {
    if (list) return JSON.stringify(await listDeadCommands(database.db), null, 2);
    const { length: retried } = await retryDeadCommands(database.db, id);
    const delivered = retried > 0 ? await outbox.sweep(retried) : 0;
    return `${retried} command(s) are retried; ${delivered} delivered now, the reconciler delivers the others.`;
  });
});
