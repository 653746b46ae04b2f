import type { Scope } from '../identity/scope.ts';

/** A mail client that authenticated with an inbox's password. */
export interface Submitter {
  inboxId: string;
  email: string;
  /** When the password was set that the client used. */
  rotatedAt: Date;
  scope: Scope;
}
