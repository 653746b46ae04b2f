/** Response of an attempt that may have been made after the backup from which the database was restored. */
export const RESTORED_RESPONSE =
  'The database was restored from a backup, and the message may have been sent since the backup.';
