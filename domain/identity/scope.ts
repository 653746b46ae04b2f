import type { TenantScope } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import type { Permission } from './permissions.ts';

/** Who acts. `system` is a lifecycle acting for itself (a scheduled send, a mail that came in). */
export type Actor = { kind: 'api_key'; id: string } | { kind: 'system'; id: string };

/**
 * What a use-case may see and do: every finder takes one. Rows of the organization outside `environmentId` and
 * `inboxId` are as absent as another tenant's.
 */
export interface Scope extends TenantScope {
  organizationId: string;
  environmentId: string;
  /** The credential is bound to its environment (a key that is not may name another by `x-env-id`). */
  environmentBound: boolean;
  /** The credential is bound to this inbox; empty: every inbox of the environment. */
  inboxId?: string;
  permissions: ReadonlySet<Permission>;
  actor: Actor;
  requestId: string;
}

/** @throws AppError `permission_denied`, naming the permission. */
export function requirePermission(scope: Pick<Scope, 'permissions'>, permission: Permission): void {
  if (scope.permissions.has(permission)) return;
  throw new AppError('permission_denied', {
    detail: `This needs the permission ${permission}.`,
    fix: `Use a key that has the permission ${permission}.`,
    extensions: { permission },
  });
}

/** The part of a `where` that keeps a finder within the scope, for tables that name environment and inbox. */
export function withinScope(scope: Scope): {
  environmentId: string;
  organizationId: string;
  inboxId?: string;
} {
  return {
    organizationId: scope.organizationId,
    environmentId: scope.environmentId,
    ...(scope.inboxId === undefined ? {} : { inboxId: scope.inboxId }),
  };
}

/** Whether the credential is bound to neither an environment nor an inbox. */
export function isOrganizationWide(scope: Pick<Scope, 'environmentBound' | 'inboxId'>): boolean {
  return !scope.environmentBound && scope.inboxId === undefined;
}

/** Whether the credential may see an inbox, as far as its own binding goes. */
export function reachesInbox(scope: Scope, inboxId: string): boolean {
  return scope.inboxId === undefined || scope.inboxId === inboxId;
}
