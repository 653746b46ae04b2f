import { AppError } from '../../platform/errors.ts';
import { PERMISSIONS, type Permission } from '../identity/permissions.ts';
import type { ImpersonationScope } from '../identity/scope.ts';

/** Whether an impersonation may call an operation. `write`: only if it was begun for writing. */
export type ImpersonationAccess = 'read' | 'write' | 'never';

/**
 * Permissions that an impersonation never has, not even for reading: exports take data out of the organization, and billing
 * belongs to its owners.
 */
const NEVER: readonly Permission[] = ['export:create', 'billing:manage'];

/**
 * Permissions that an impersonation has for reading only. Changes with them decide who has access, outlive the
 * impersonation, speak for the organization to others, or are decisions of its people.
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

/** Excludes sending, because use-cases also check the permission to send, for example when a draft is scheduled. */
export const IMPERSONATION_PERMISSIONS: readonly Permission[] = PERMISSIONS.filter(
  (name) => name !== 'messages:send',
);

export interface ClassifiedOperation {
  permission: Permission;
  method: string;
  /**
   * Whether the operation gives access that outlives the impersonation, although its permission also covers harmless
   * changes.
   */
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

/**
 * @throws AppError `permission_denied`: an impersonation is neither a person nor staff, and cannot begin another
 * impersonation.
 */
export function refuseImpersonation(): never {
  throw new AppError('permission_denied', {
    detail: 'An impersonation acts in one organization. It is neither a person nor staff.',
    fix: 'Use your own session.',
    extensions: { impersonation: 'never' },
  });
}
