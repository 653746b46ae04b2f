import { createHash } from 'node:crypto';
import { sql } from 'kysely';

const MARK = '/* prepared */';

/**
 * For `modifyEnd`: a statement that contains this comment is prepared. Each connection of PostgreSQL parses and plans it
 * once, instead of every time. Meant for statements that run once per message and take longer to plan than to run. Their
 * plan must suit every organization, also when it is older than most of its rows: they look up few rows, by keys. Their text
 * must not depend on values.
 */
export const PREPARED = sql.raw(MARK);

/** A text whose values are not bound would otherwise prepare one statement for each value, in every connection. */
const MAX_STATEMENTS = 100;

const names = new Map<string, string>();

/**
 * The name under which a connection prepares a statement.
 *
 * @returns undefined for a statement without the mark, and beyond the limit of statements.
 */
export function nameOfPrepared(text: string): string | undefined {
  if (!text.includes(MARK)) return undefined;
  const known = names.get(text);
  if (known !== undefined || names.size >= MAX_STATEMENTS) return known;
  const name = createHash('sha256').update(text).digest('base64url').slice(0, 32);
  names.set(text, name);
  return name;
}
