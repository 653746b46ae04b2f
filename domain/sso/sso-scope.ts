import type { TenantScope } from '../../platform/database/database.ts';
import type { AuditedScope } from '../audit/record-audit.ts';
import type { Member, Scope } from '../identity/scope.ts';

/** What the use-cases of single sign-on need of a caller: a member or key, or the guest of a set-up link. */
export interface SsoScope extends TenantScope, AuditedScope, Pick<Scope, 'environmentBound' | 'inboxId'> {
  requestId: string;
  member?: Member | undefined;
  /** Added to each entry of the audit log. */
  auditDetails?: Record<string, unknown>;
}
