/**
 * A string literal of PostgreSQL (section 4.1.2), as `escapeLiteral` of libpq writes it. The ORM writes every value into
 * its statements by its own, which puts literals together character by character: 32 bytes of heap for each, 130 MiB
 * for a mail of 4 MiB.
 */
export function quoteText(text: string): string {
  const literal = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
  return text.includes('\\') ? ` E${literal}` : literal;
}
