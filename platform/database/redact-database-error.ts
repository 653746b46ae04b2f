/** Fields of a PostgreSQL error that contain values of the row or the statement (manual, section 54.8). */
const VALUE_FIELDS = ['detail', 'where', 'internalQuery', 'hint'] as const;

/**
 * Removes the values from an error of PostgreSQL, so that it can be logged and shown in Temporal: a unique violation names
 * the key's value, and invalid input is quoted. SQLSTATE and the names of table, column and constraint remain.
 */
export function redactDatabaseError(error: unknown): unknown {
  if (!(error instanceof Error) || !('code' in error) || !('severity' in error)) return error;
  const details = error as unknown as Record<string, unknown>;
  for (const field of VALUE_FIELDS) delete details[field];
  const message = redactMessage(String(error.code), error.message);
  // The stack starts with the message.
  if (error.stack) error.stack = error.stack.replace(error.message, () => message);
  error.message = message;
  return error;
}

/** Data exceptions (class 22) quote their input anywhere, other errors after a colon. */
function redactMessage(code: string, message: string): string {
  return code.startsWith('22') ? message.replace(/".*"/s, '"…"') : message.replace(/: ".*"/s, ': "…"');
}
