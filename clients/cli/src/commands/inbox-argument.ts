import { CliError, EXIT, usageError } from '../cli-error.ts';
import type { AgentEmail } from '../sdk.ts';

/**
 * The id of the inbox that a person names by id or address. Without a name it is the only one.
 *
 * @throws CliError if there is no such inbox, or several.
 */
export async function findInboxId(client: AgentEmail, name: string | undefined): Promise<string> {
  if (name?.startsWith('inb_')) return name;
  if (name !== undefined && !name.includes('@'))
    throw usageError(
      `${name} is neither the id nor the address of an inbox.`,
      'List them: agent-email inboxes.',
    );
  const { data } = await client.inboxes.list(name === undefined ? { limit: 2 } : { email: name, limit: 1 });
  const [first, second] = data;
  if (second) throw usageError('There are several inboxes.', 'Name one: agent-email inboxes lists them.');
  if (first) return first.id;
  if (name === undefined) throw usageError('There is no inbox.', 'Create one: agent-email inboxes create.');
  throw new CliError(`There is no inbox ${name}.`, {
    exitCode: EXIT.api,
    code: 'not_found',
    fix: 'List them: agent-email inboxes.',
  });
}
