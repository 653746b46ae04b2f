import type { Scope } from '../../domain/identity/scope.ts';

/** The valid credential of a request that no operation has checked. */
export interface Caller {
  /** Undefined for a session that has entered no organization. */
  scope?: Scope;
  isSuspended: boolean;
  /** Whether the credential is a person's own session. */
  isPerson: boolean;
  mayOnlyEnroll: boolean;
}
