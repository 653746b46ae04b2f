/** The configuration or code of this process does not fit the database. The message says what to do. */
export class InstallationError extends Error {
  override name = 'InstallationError';
}
