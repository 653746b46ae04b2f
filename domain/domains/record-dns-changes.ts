import type { Db } from '../../platform/database/tables.ts';
import type { ChangeOf } from '../audit/audit-actions.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { DomainWithKeys } from './domain-with-keys.ts';

/** Audit actions that DNS checks record. People's changes of a domain have their own. */
export interface CheckedState {
  status: string;
  activeSelector: string | null;
}

export const checkedStateOf = ({ domain, keys }: DomainWithKeys): CheckedState => ({
  status: domain.verificationStatus,
  activeSelector: keys.find(({ state }) => state === 'active')?.selector ?? null,
});

/**
 * Records that checks verified or failed the domain, or activated its new DKIM key, so that its history can be read later. The
 * actor is the service even if a person asked for the check, because DNS decides.
 *
 * @param before the state before the check.
 */
export async function recordDnsChanges(db: Db, before: CheckedState, checked: DomainWithKeys): Promise<void> {
  const after = checkedStateOf(checked);
  const { domain } = checked;
  const record = (change: ChangeOf<'domain'>, details: Record<string, string | null>) =>
    recordAudit(
      db,
      {
        organizationId: domain.organizationId,
        actor: { kind: 'system', id: domain.id },
        requestId: domain.id,
      },
      {
        action: `domain.${change}`,
        resourceType: 'domain',
        resourceId: domain.id,
        details: { domain_name: domain.domainName, ...details },
      },
    );
  if (after.activeSelector !== before.activeSelector)
    await record('dkim_activated', { selector: after.activeSelector });
  if (after.status === before.status) return;
  if (after.status === 'verified') await record('verified', {});
  if (after.status === 'failed') await record('failed', { status_reason: domain.statusReason });
}
