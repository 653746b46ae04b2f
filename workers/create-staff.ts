import { parseArgs } from 'node:util';
import { addStaffMember } from '../domain/bootstrap/add-staff-member.ts';
import { STAFF_ROLES, type StaffRole } from '../domain/staff/staff-scope.ts';
import { loadConfig } from '../platform/config.ts';
import { createDatabase } from '../platform/database/database.ts';
import { runCommand } from './run-command.ts';

const USAGE = `npm run admin:create -- --email EMAIL [--role ${STAFF_ROLES.join('|')}]`;

/**
 * Makes a person staff of the service, and prints the password of a new account, of which the service stores only a hash. The
 * first sign-in asks for a second factor.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({ options: { email: { type: 'string' }, role: { type: 'string' } } });
  const role = values.role ?? 'admin';
  if (values.email && /^[^@\s]+@[^@\s]+$/.test(values.email) && isStaffRole(role))
    return create(values.email, role);
  process.stderr.write(`${USAGE}\n`);
  process.exitCode = 2;
}

function isStaffRole(text: string): text is StaffRole {
  return (STAFF_ROLES as readonly string[]).includes(text);
}

async function create(email: string, staffRole: StaffRole): Promise<void> {
  const { DATABASE_URL: url } = loadConfig();
  const database = createDatabase({ url, poolSize: 1 });
  try {
    const { totpSecret: _none, ...added } = await addStaffMember(database, { email, role: staffRole });
    process.stdout.write(`${JSON.stringify(added, null, 2)}\n`);
  } finally {
    await database.close();
  }
}

runCommand('admin:create', main);
