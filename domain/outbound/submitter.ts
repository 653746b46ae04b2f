import type { Scope } from '../identity/scope.ts';

/** A mail client that authenticated with an inbox's password. */
export interface Submitter {
  inboxId: string;
  email: string;
  /** When the password that the client used was set. */
  rotatedAt: Date;
  scope: Scope;
}
