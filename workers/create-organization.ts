import { parseArgs } from 'node:util';
import { createFirstOrganization } from '../domain/bootstrap/first-organization.ts';
import { loadConfig } from '../platform/config.ts';
import { createDatabase } from '../platform/database/database.ts';
import { runCommand } from './run-command.ts';

const USAGE = 'npm run organization:create -- --email OWNER [--name NAME]';

/** Creates the first organization of an installation and prints its keys, of which the service stores only hashes. */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { email: { type: 'string' }, name: { type: 'string' } } });
  if (values.email) return create(values.email, values.name ?? 'First organization');
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
}

async function create(ownerEmail: string, organizationName: string): Promise<void> {
  const { DATABASE_URL: url, DEFAULT_TIER: tier } = loadConfig();
  const database = createDatabase({ url, poolSize: 1 });
  try {
    const created = await createFirstOrganization(database, { organizationName, ownerEmail, tier });
    if (created) process.stdout.write(`${JSON.stringify(created, null, 2)}\n`);
    else {
      process.stderr.write('An organization already exists; nothing was changed.\n');
      process.exitCode = 1;
    }
  } finally {
    await database.close();
  }
}

runCommand('organization:create', main);
