import { KEY_PERMISSIONS } from '../../domain/identity/permissions.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import type { Inbox } from '../../domain/inboxes/inbox.entity.ts';
import type { TestOrganization } from './organizations.ts';

/**
 * The scope of the organization's key: every permission, in the environment of `inbox`, or in production where none is
 * given.
 */
export function testScope(
  organization: Pick<TestOrganization, 'organizationId' | 'productionEnvironmentId' | 'keyId'>,
  inbox?: Pick<Inbox, 'environmentId'>,
): Scope {
  return {
    organizationId: organization.organizationId,
    environmentId: inbox?.environmentId ?? organization.productionEnvironmentId,
    environmentBound: false,
    permissions: new Set(KEY_PERMISSIONS),
    actor: { kind: 'api_key', id: organization.keyId },
    requestId: 'req_test',
  };
}
