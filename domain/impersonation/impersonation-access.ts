import { AppError } from '../../platform/errors.ts';
import { PERMISSIONS, type Permission } from '../identity/permissions.ts';
import type { ImpersonationScope } from '../identity/scope.ts';

/** What an impersonation may do with an operation. `write`: only one that was begun for writing. */
export type ImpersonationAccess = 'read' | 'write' | 'never';

/**
 * Permissions for what staff never do in the name of an organization, not even reading: its data leaves by exports, and money
 * is the owner's.
 */
const NEVER: readonly Permission[] = ['export:create', 'billing:manage'];

/**
 * Permissions for changes that staff never make in the name of an organization: they decide who has access to it, outlive
 * the visit, speak for it to others, or are decisions of its people. Reading is allowed.
 */
const NEVER_CHANGED: readonly Permission[] = [
  'keys:manage',
  'members:manage',
  'policies:manage',
  'sso:manage',
  'messages:send',
  'messages:approve',
  'environments:manage',
  'retention:manage',
  'usage:manage',
  'org:update',
  'org:transfer',
  'org:delete',
];

/** Use-cases check the permission to send beside that of their operation, for example when a draft is scheduled. */
export const IMPERSONATION_PERMISSIONS: readonly Permission[] = PERMISSIONS.filter(
  (name) => name !== 'messages:send',
);

export interface ClassifiedOperation {
  permission: Permission;
  method: string;
  /** The operation gives access that outlives the visit, although its permission covers harmless changes, too. */
  isForbidden: boolean;
}

export function classifyOperation({
  permission,
  method,
  isForbidden,
}: ClassifiedOperation): ImpersonationAccess {
  if (isForbidden || NEVER.includes(permission)) return 'never';
  if (method === 'GET' || method === 'HEAD') return 'read';
  return NEVER_CHANGED.includes(permission) ? 'never' : 'write';
}

/** @throws AppError `permission_denied`. */
export function requireImpersonationAccess(
  { allowsWrite }: Pick<ImpersonationScope, 'allowsWrite'>,
  access: ImpersonationAccess,
): void {
  if (access === 'read' || (access === 'write' && allowsWrite)) return;
  throw new AppError('permission_denied', {
    detail:
      access === 'never'
        ? 'Staff cannot do this in the name of an organization.'
        : 'This impersonation is for reading.',
    fix:
      access === 'never'
        ? 'Ask a person of the organization, or use the operation of /admin if there is one.'
        : 'An admin of the service can begin one with {"write": true}.',
    extensions: { impersonation: access },
  });
}

/** @throws AppError `permission_denied`: an impersonation is neither a person nor staff, and begins no other one. */
export function refuseImpersonation(): never {
  throw new AppError('permission_denied', {
    detail: 'An impersonation acts in one organization. It is no person, and not staff.',
    fix: 'Use your own session.',
    extensions: { impersonation: 'never' },
  });
}
