/**
 * Quotes a string literal (PostgreSQL manual, section 4.1.2) as libpq's `escapeLiteral` does. Replaces the ORM's own
 * function, which concatenates character by character: 32 bytes of heap each, 130 MiB for a message of 4 MiB.
 */
export function quoteText(text: string): string {
  const literal = `'${text.replaceAll("'", "''").replaceAll('\\', '\\\\')}'`;
  return text.includes('\\') ? ` E${literal}` : literal;
}
