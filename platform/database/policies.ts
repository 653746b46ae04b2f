import type { PolicyDef } from '@mikro-orm/core';

/** Roles the first migration creates; logins inherit one of them. */
export const API_ROLE = 'agent_email_api';
export const WORKER_ROLE = 'agent_email_worker';
/** Owns the look-ups that happen before a tenant is known (API key, address claim). */
export const LOOKUP_ROLE = 'agent_email_lookup';

/** What an export reads as, in the workers: a member of the API's role, so that row-level security binds it. */
export const EXPORT_ROLE = 'agent_email_export';

/** Session variable that names the organization of the running transaction. */
export const ORGANIZATION_VARIABLE = 'app.org_id';

// nullif: on a reused connection an unset variable reads as '' and not as NULL.
const CURRENT_ORGANIZATION = `nullif(current_setting('${ORGANIZATION_VARIABLE}', true), '')`;

/**
 * Row-level security of a tenant's table: the API sees the rows of the organization its transaction names, none
 * without one; workers see all and scope their own statements. `lookup` opens the table to the functions that run
 * before a tenant is known.
 */
export function tenantPolicies({ column = 'org_id', lookup = false } = {}): PolicyDef[] {
  const own = `${column} = ${CURRENT_ORGANIZATION}`;
  return [
    { name: 'tenant', roles: [API_ROLE], using: own, check: own },
    { name: 'worker', roles: [WORKER_ROLE], using: 'true', check: 'true' },
    ...(lookup ? [{ name: 'lookup', roles: [LOOKUP_ROLE], using: 'true', check: 'true' }] : []),
  ];
}
