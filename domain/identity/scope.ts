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
  /** From `sandbox` nothing leaves. */
  environmentKind: 'production' | 'sandbox';
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
