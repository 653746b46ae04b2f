import type { TenantScope } from '../../platform/database/database.ts';
import type { AuditedScope } from '../audit/record-audit.ts';
import type { Member, Scope } from '../identity/scope.ts';

/** The caller of a use-case of single sign-on: a member, a key, or the guest of a set-up link. */
export interface SsoScope extends TenantScope, AuditedScope, Pick<Scope, 'environmentBound' | 'inboxId'> {
  requestId: string;
  member?: Member | undefined;
  /** Added to each entry of the audit log. */
  auditDetails?: Record<string, unknown>;
}
