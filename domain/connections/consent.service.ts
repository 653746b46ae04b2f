import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, invalid, notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { unauthenticated } from '../identity/authentication.ts';
import { CONNECTION_PERMISSIONS, type Permission } from '../identity/permissions.ts';
import { type Person, requireRecentSignIn } from '../identity/person.ts';
import { ROLE_PERMISSIONS } from '../identity/roles.ts';
import type { Scope } from '../identity/scope.ts';
import { findPolicies } from '../policies/find-policies.ts';
import { findConnectionViolation } from './connection-policies.ts';
import { hashConnectionToken } from './connection-token.ts';

/** The lifetimes that a person can choose, in days. */
export const CONNECTION_LIFETIMES = [1, 7, 30, 90, 365] as const;
/** Live connections of a person in an organization. */
const MAX_CONNECTIONS = 100;

export interface ConsentOffer {
  organization: { id: string; name: string };
  environments: { id: string; name: string }[];
  /** Those that the client asks for and the person has. */
  permissions: Permission[];
}

export interface Consent {
  /** Id of the request for authorization that the person answers. */
  requestId: string;
  clientId: string;
  clientName: string;
  redirectUri: string;
  /** What the client asks for. */
  requested: readonly Permission[];
  permissions: readonly Permission[];
  /** Undefined: every environment. */
  environmentId?: string | undefined;
  /** Address or id of the one inbox that it may use; undefined: every inbox. */
  inbox?: string | undefined;
  lifetimeDays: number;
}

export type ConsentService = ReturnType<typeof createConsentService>;

/** What a person decides on the page of consent. */
export function createConsentService({ database }: { database: Database }) {
  return {
    /**
     * @param requested permissions that the client asks for.
     * @throws AppError `session_expired` without a sign-in within ten minutes; `permission_denied` for a credential that is
     * not the person's own session, or whose role has none of the permissions; `policy_violation`.
     */
    offer: (scope: Scope, requested: readonly Permission[]): Promise<ConsentOffer> =>
      database.read(scope, async ({ db }) => {
        await requirePresentPerson(db, scope);
        const organization = await db
          .selectFrom('organizations')
          .select(['id', 'name'])
          .where('id', '=', scope.organizationId)
          .executeTakeFirst();
        if (!organization) throw notFound('organization', scope.organizationId);
        const environments = await db
          .selectFrom('environments')
          .select(['id', 'name'])
          .where('org_id', '=', scope.organizationId)
          .orderBy('id')
          .execute();
        return { organization, environments, permissions: grantable(scope.permissions, requested) };
      }),

    /**
     * Connects a client. Afterwards the connection exists, and its client gets a code for it. Who presses the button twice
     * makes one connection.
     *
     * @returns the id of the connection.
     * @throws AppError as {@link offer}; `validation_error` for a choice that the page does not offer; `not_found`;
     * `conflict` beyond 100 connections, and for a request that was answered with other choices.
     */
    grant: (scope: Scope, consent: Consent): Promise<string> =>
      database.transaction(scope, async ({ db }) => {
        const person = await requirePresentPerson(db, scope);
        // A removal of the member waits, and then finds the connection.
        const role = await lockRole(db, scope);
        const offered = grantable(new Set(ROLE_PERMISSIONS[role]), consent.requested);
        requireOffered(consent, offered);
        await lockKey(db, 'connections', scope.organizationId, scope.actor.id);
        const place = await resolvePlace(db, scope, consent);
        const granted = { ...consent, ...place, userId: person.userId };
        const earlier = await findGranted(db, scope, granted);
        if (earlier !== undefined) return earlier;
        await requireFewConnections(db, scope);
        return insertConnection(db, scope, { ...granted, person });
      }),
  };
}

interface Granted extends Omit<Consent, 'environmentId'>, Place {
  userId: string;
}

/**
 * The connection that the same answer to the same request made before.
 *
 * @throws AppError `conflict` if the request had another answer.
 */
async function findGranted(db: Db, scope: Scope, consent: Granted): Promise<string | undefined> {
  const earlier = await db
    .selectFrom('connections')
    .select([
      'id',
      'permissions',
      'env_id as environmentId',
      'inbox_id as inboxId',
      sql<number>`round(extract(epoch from expires_at - created_at) / 86400)::int`.as('lifetimeDays'),
    ])
    .where('org_id', '=', scope.organizationId)
    .where('user_id', '=', consent.userId)
    .where('request_hash', '=', hashConnectionToken(consent.requestId))
    .where('ended_at', 'is', null)
    .executeTakeFirst();
  if (!earlier) return undefined;
  const answerOf = ({ permissions, environmentId, inboxId, lifetimeDays }: Omit<typeof earlier, 'id'>) =>
    JSON.stringify([[...permissions].sort(), environmentId, inboxId, lifetimeDays]);
  if (answerOf(earlier) === answerOf({ ...consent, permissions: [...consent.permissions] }))
    return earlier.id;
  throw answered();
}

async function insertConnection(
  db: Db,
  scope: Scope,
  { person, ...consent }: Granted & { person: Person },
): Promise<string> {
  const id = newId('connection');
  const { clientId, clientName, lifetimeDays, environmentId, inboxId } = consent;
  const redirectTo = describeRedirect(consent.redirectUri);
  const permissions = [...consent.permissions];
  const inserted = await db
    .insertInto('connections')
    .values({
      id,
      org_id: scope.organizationId,
      env_id: environmentId,
      inbox_id: inboxId,
      user_id: person.userId,
      request_hash: hashConnectionToken(consent.requestId),
      client_id: clientId,
      client_name: clientName,
      redirect_to: redirectTo,
      permissions,
      method: person.method,
      factors: [...person.factors],
      sso_configuration_id: person.ssoConfigurationId,
      authenticated_at: person.authenticatedAt,
      expires_at: sql<Date>`now() + make_interval(days => ${lifetimeDays})`,
    })
    .onConflict((conflict) => conflict.column('request_hash').doNothing())
    .returning('id')
    .executeTakeFirst();
  // In another organization, or by a connection that has ended since.
  if (!inserted) throw answered();
  await recordAudit(db, scope, {
    action: 'connection.created',
    resourceType: 'connection',
    resourceId: id,
    details: {
      client_id: clientId,
      client_name: clientName,
      redirect_to: redirectTo,
      permissions,
      env_id: environmentId,
      inbox_id: inboxId,
      expires_in_days: lifetimeDays,
    },
  });
  return id;
}

const answered = () =>
  new AppError('conflict', {
    detail: 'The request was answered already.',
    fix: 'Go back to the program that wants to connect, and start again. What it was allowed is listed on the page of the organization.',
  });

const grantable = (held: ReadonlySet<Permission>, requested: readonly Permission[]): Permission[] =>
  CONNECTION_PERMISSIONS.filter((name) => held.has(name) && requested.includes(name));

/** Where codes for the connection go, as people can judge it: a site, or a program on their computer. */
export function describeRedirect(redirectUri: string): string {
  const { protocol, origin } = new URL(redirectUri);
  return protocol === 'https:' || protocol === 'http:' ? origin : protocol;
}

/** The person must be here, by a session of their own, and meet what the organization requires of connections. */
async function requirePresentPerson(db: Db, scope: Scope): Promise<Person> {
  const { organizationId, member, impersonation } = scope;
  if (!member || impersonation)
    throw new AppError('permission_denied', {
      detail: 'Only a person can connect a client, by signing in.',
      fix: 'Open the page in a browser, and sign in there.',
    });
  const { person } = member;
  requireRecentSignIn(person);
  const policies = await findPolicies(db, organizationId);
  const isActiveSso = await findActiveSso(db, organizationId, person.ssoConfigurationId);
  const violation = findConnectionViolation(person, { ...policies, organizationId, isActiveSso });
  if (violation) throw violation;
  return person;
}

async function findActiveSso(db: Db, organizationId: string, id: string | null): Promise<boolean> {
  if (id === null) return false;
  const active = await db
    .selectFrom('sso_configurations')
    .select('id')
    .where('org_id', '=', organizationId)
    .where('id', '=', id)
    .where('status', '=', 'active')
    .executeTakeFirst();
  return active !== undefined;
}

async function lockRole(db: Db, { organizationId, actor }: Scope) {
  const member = await db
    .selectFrom('members')
    .select('role')
    .where('org_id', '=', organizationId)
    .where('user_id', '=', actor.id)
    .forShare()
    .executeTakeFirst();
  if (!member) throw unauthenticated();
  return member.role;
}

function requireOffered({ permissions, lifetimeDays }: Consent, offered: readonly Permission[]): void {
  if (permissions.length === 0)
    throw invalid('/body/permissions', 'must not be empty', 'Choose at least one permission, or cancel.');
  if (!permissions.every((name) => offered.includes(name)))
    throw invalid('/body/permissions', 'must be among those that the page offers', 'Reload the page.');
  if (!CONNECTION_LIFETIMES.some((days) => days === lifetimeDays))
    throw invalid('/body/days', 'must be among those that the page offers', 'Reload the page.');
}

async function requireFewConnections(db: Db, { organizationId, actor }: Scope): Promise<void> {
  const live = await db
    .selectFrom('connections')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('org_id', '=', organizationId)
    .where('user_id', '=', actor.id)
    .where('ended_at', 'is', null)
    .where('expires_at', '>', sql<Date>`now()`)
    .executeTakeFirst();
  if (Number(live?.count ?? 0) >= MAX_CONNECTIONS)
    throw new AppError('conflict', {
      detail: `You have ${MAX_CONNECTIONS} connections in this organization.`,
      fix: 'End some that you no longer use: GET /api/v1/connections lists them, DELETE /api/v1/connections/{id} ends one.',
    });
}

interface Place {
  /** Null: every environment. */
  environmentId: string | null;
  /** Null: every inbox. */
  inboxId: string | null;
}

async function resolvePlace(
  db: Db,
  { organizationId }: Scope,
  { environmentId, inbox }: Consent,
): Promise<Place> {
  if (environmentId !== undefined) {
    const environment = await db
      .selectFrom('environments')
      .select('id')
      .where('org_id', '=', organizationId)
      .where('id', '=', environmentId)
      .executeTakeFirst();
    if (!environment) throw notFound('environment', environmentId);
  }
  if (inbox === undefined) return { environmentId: environmentId ?? null, inboxId: null };
  const found = await db
    .selectFrom('inboxes')
    .select(['id', 'env_id as environmentId'])
    .where('org_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .where((eb) => eb.or([eb('id', '=', inbox), eb('email', '=', inbox.toLowerCase())]))
    .$if(environmentId !== undefined, (query) => query.where('env_id', '=', environmentId ?? ''))
    .limit(1)
    .executeTakeFirst();
  if (!found) throw notFound('inbox', inbox);
  return { environmentId: found.environmentId, inboxId: found.id };
}
