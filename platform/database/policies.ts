import type { PolicyDef } from '@mikro-orm/core';

/** Roles created by the first migration; each login inherits one of them. */
export const API_ROLE = 'agent_email_api';
export const WORKER_ROLE = 'agent_email_worker';
/** Owns the SQL functions that run before the tenant is known, or across tenants (API keys, address claims, search). */
export const LOOKUP_ROLE = 'agent_email_lookup';

/**
 * The API switches to this role for use-cases of people (sign-in, sessions, factors, memberships): it reads users of all
 * organizations but no mail. The API's own role cannot read passwords, factors and sessions.
 */
export const PEOPLE_ROLE = 'agent_email_people';

/**
 * The API switches to this role for use-cases of staff: it reads organizations, people, keys and usage of every tenant, and
 * no mail.
 */
export const STAFF_ROLE = 'agent_email_staff';

/** Workers read exports as this role. It is a member of the API's role, so row-level security applies to it. */
export const EXPORT_ROLE = 'agent_email_export';

/** Session variable that names the organization of the running transaction. */
export const ORGANIZATION_VARIABLE = 'app.org_id';

// On a reused connection an unset variable is '' instead of NULL.
const CURRENT_ORGANIZATION = `nullif(current_setting('${ORGANIZATION_VARIABLE}', true), '')`;

/**
 * Row-level security of a tenant table. The API sees the rows of the organization that its transaction names; without
 * one it sees no rows. Workers see all rows and scope their own statements.
 *
 * @param column column of the organization's id.
 * @param lookup opens the table to the functions of {@link LOOKUP_ROLE}.
 * @param people opens the table to {@link PEOPLE_ROLE}.
 * @param staff opens the table to {@link STAFF_ROLE}.
 */
export function tenantPolicies({
  column = 'org_id',
  lookup = false,
  people = false,
  staff = false,
} = {}): PolicyDef[] {
  const own = `${column} = ${CURRENT_ORGANIZATION}`;
  return [
    { name: 'tenant', roles: [API_ROLE], using: own, check: own },
    { name: 'worker', roles: [WORKER_ROLE], using: 'true', check: 'true' },
    ...(lookup ? [{ name: 'lookup', roles: [LOOKUP_ROLE], using: 'true', check: 'true' }] : []),
    ...(people ? [{ name: 'people', roles: [PEOPLE_ROLE], using: 'true', check: 'true' }] : []),
    ...(staff ? [{ name: 'staff', roles: [STAFF_ROLE], using: 'true', check: 'true' }] : []),
  ];
}
