import type { TenantScope } from '../../platform/database/database.ts';
import { AppError } from '../../platform/errors.ts';
import { KEY_PERMISSIONS, type Permission } from './permissions.ts';
import type { Person } from './person.ts';
import type { MemberRole } from './roles.ts';

/** Who makes a change. `system`: a workflow, without a request (a scheduled send, an incoming message). */
export type Actor =
  | { kind: 'api_key'; id: string }
  /** A connection of an MCP host or of the CLI, which a person granted. */
  | { kind: 'connection'; id: string }
  | { kind: 'user'; id: string }
  /** Staff, in an impersonation or through an administration endpoint. */
  | { kind: 'staff'; id: string }
  | { kind: 'system'; id: string };

/**
 * The data that a use-case may see and change. Every finder takes a scope. Rows of the organization outside `environmentId`
 * and `inboxId` are treated like rows of another tenant.
 */
export interface Scope extends TenantScope {
  organizationId: string;
  environmentId: string;
  /** Whether the credential is bound to its environment. An unbound key may select another environment with `x-env-id`. */
  environmentBound: boolean;
  /** Whether the request named its environment (`x-env-id`) and so reaches no other. Default: false. */
  environmentSelected?: boolean;
  /** The inbox the credential is bound to; undefined if it may access every inbox of the environment. */
  inboxId?: string;
  permissions: ReadonlySet<Permission>;
  actor: Actor;
  /** The person's session and role; undefined for keys, workflows and impersonations. */
  member?: Member;
  /** The person who granted the connection; undefined for every other credential. */
  connection?: { userId: string };
  /** The impersonation of staff who act in the organization; otherwise undefined. */
  impersonation?: ImpersonationScope;
  /** Staff who change the organization from outside; otherwise undefined. */
  administration?: AdministrationScope;
  /** The client's address; undefined in workflows. */
  ip?: string;
  requestId: string;
  /** Set if the request is refused. The use-case that sends then only records the refusal. */
  sendRefusal?: SendRefusal;
}

/** Why a request to send is refused before its use-case runs. */
export interface SendRefusal {
  reason: 'rate_limited' | 'account_paused';
  /** The response to the request. */
  error: AppError;
}

export interface ImpersonationScope {
  /** Impersonation id (imp_…). */
  id: string;
  staffSessionId: string;
  allowsWrite: boolean;
  /** Download links expire then, too. */
  expiresAt: Date;
}

export interface AdministrationScope {
  /** Session of the staff member. */
  sessionId: string;
  /** The reason, as in the organization's audit log. */
  reason: string;
}

export interface Member {
  person: Person;
  role: MemberRole;
}

/** @throws AppError `permission_denied`, naming the permission. */
export function requirePermission(scope: Pick<Scope, 'permissions'>, permission: Permission): void {
  if (scope.permissions.has(permission)) return;
  throw new AppError('permission_denied', {
    detail: `This operation requires the permission ${permission}.`,
    fix: KEY_PERMISSIONS.includes(permission)
      ? `Use a key with the permission ${permission}, or a role that has it. GET /api/v1/me shows what this credential has.`
      : 'Ask a person of the organization: API keys cannot have this permission.',
    extensions: { permission },
  });
}

/** The `where` conditions that limit a finder to the scope, for tables with environment and inbox columns. */
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

/** What a statement needs to see only the rows of a scope. */
export type Place = Pick<Scope, 'organizationId' | 'environmentId' | 'inboxId'>;

export const placeOf = ({ organizationId, environmentId, inboxId }: Scope): Place => ({
  organizationId,
  environmentId,
  inboxId,
});

/** As {@link withinScope}, for a statement: `.where((eb) => eb.and(columnsWithin(scope)))`. */
export function columnsWithin({ organizationId, environmentId, inboxId }: Place): {
  org_id: string;
  env_id: string;
  inbox_id?: string;
} {
  return {
    org_id: organizationId,
    env_id: environmentId,
    ...(inboxId === undefined ? {} : { inbox_id: inboxId }),
  };
}

/** Whether the credential is bound to neither an environment nor an inbox. */
export function isOrganizationWide(scope: Pick<Scope, 'environmentBound' | 'inboxId'>): boolean {
  return !scope.environmentBound && scope.inboxId === undefined;
}

/** Whether the credential's inbox binding allows access to the inbox. */
export function canAccessInbox(scope: Scope, inboxId: string): boolean {
  return scope.inboxId === undefined || scope.inboxId === inboxId;
}

/**
 * For operations on the organization as a whole: its members, policies and audit log.
 *
 * @throws AppError `permission_denied` for a credential that is bound to an environment or inbox.
 */
export function requireOrganizationWide(scope: Pick<Scope, 'environmentBound' | 'inboxId'>): void {
  if (isOrganizationWide(scope)) return;
  throw new AppError('permission_denied', {
    detail: 'This concerns the whole organization, but the credential is bound to an environment or inbox.',
    fix: 'Use an API key that is bound to no environment and no inbox.',
  });
}
