import { loadConfig } from '../platform/config.ts';
import { createDatabase, type Database } from '../platform/database/database.ts';
import { createLogger } from '../platform/logger.ts';
import { createOutbox, type Outbox } from '../platform/outbox/outbox.ts';
import { createWorkflowGateway } from '../platform/outbox/workflow-gateway.ts';
import { createTemporalClient } from '../platform/temporal.ts';

/**
 * Runs an operator's command with a worker's database login, prints its result, and delivers the workflow starts that it
 * committed. If Temporal is away, they stay in the outbox.
 */
export async function runOutboxCommand(
  command: (dependencies: { database: Database; outbox: Outbox }) => Promise<string>,
): Promise<void> {
  const config = loadConfig();
  const database = createDatabase({ url: config.DATABASE_URL, poolSize: 2 });
  const temporal = createTemporalClient(config);
  const outbox = createOutbox({
    database,
    workflows: createWorkflowGateway(temporal),
    logger: createLogger(config, 'command'),
  });
  try {
    process.stdout.write(`${await command({ database, outbox })}\n`);
    await outbox.drain();
  } finally {
    await temporal.connection.close();
    await database.close();
  }
}
