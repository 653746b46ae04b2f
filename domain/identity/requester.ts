import { type Expression, expressionBuilder, type SqlBool, sql } from 'kysely';
import { anyOf } from '../../platform/database/any-of.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import type { Permission } from './permissions.ts';
import { MEMBER_ROLES, type MemberRole, ROLE_PERMISSIONS } from './roles.ts';
import type { Actor } from './scope.ts';

/**
 * Acts that happen later than they were requested, each with what its requester must still have when it happens. The table
 * in docs/security.md says what happens otherwise. A guard test compares both with the code.
 */
export const DEFERRED_ACTS = {
  /** A scheduled draft, or one that was approved. */
  send: { permissions: ['messages:send'] },
  /** The approval of a scheduled draft, and the recipients that an approver chose to remember. */
  approval: { permissions: ['messages:approve'] },
  /** The requester also needs every permission of the role that the invitation gives. */
  invitation: { permissions: ['members:manage'] },
  sso_setup_link: { permissions: ['sso:manage'] },
  export: { permissions: ['export:create'] },
  /** A replay to a webhook endpoint, or the cancellation of its deliveries. */
  webhook_job: { permissions: ['webhooks:manage'] },
  upgrade_request: { permissions: ['billing:manage'] },
  staff_job: { staffRoles: ['admin'] },
  announcement: { staffRoles: ['admin'] },
} as const satisfies Record<
  string,
  { permissions: readonly Permission[] } | { staffRoles: readonly ('admin' | 'support')[] }
>;

type DeferredAct = keyof typeof DEFERRED_ACTS;
type StaffAct = 'staff_job' | 'announcement';
export type OrganizationAct = Exclude<DeferredAct, StaffAct>;

/** Why a requester may no longer do what they requested. */
export const REQUESTER_PROBLEMS = {
  unknown: 'It is not known who asked for it.',
  key_revoked: 'The API key was revoked.',
  key_expired: 'The API key has expired.',
  connection_ended: 'The connection was ended.',
  connection_expired: 'The connection has expired.',
  account_closed: 'The account was suspended or deleted.',
  not_a_member: 'The person is no longer a member of the organization.',
  permission_lost: 'The permission was taken away.',
  out_of_reach: 'The API key or connection does not reach it.',
  login_removed: 'The SMTP login of the inbox was removed.',
} as const;
export type RequesterProblem = keyof typeof REQUESTER_PROBLEMS;

/** Recorded in a row whose act did not happen, because its requester may no longer do it. */
export const REQUESTER_NOT_ALLOWED = 'requester_not_allowed';

/** Who asked for an act. */
export interface Requester {
  /** Null for an act of staff. */
  organizationId: string | null;
  /** Null if it is not known. */
  actor: Actor | null;
}

export interface RequestedAct<Act extends DeferredAct = OrganizationAct> {
  act: Act;
  /** Permissions that the requester needs besides those of the act. */
  permissions?: readonly Permission[];
  /** The place that the act concerns; undefined: the organization as a whole. */
  place?: {
    environmentId: string;
    /** Null: every inbox of the environment. */
    inboxIds: readonly string[] | null;
  };
}

/**
 * Checks again, when an act happens, whether its requester may still do it. Address ranges, sign-in policies and rotation do
 * not matter here, because they limit requests.
 *
 * A key must not be revoked or expired, must still have the permission, and must reach the place. A person must be an active
 * member with a role that has the permission. A connection must be live like a key, and its person must still have the
 * permission. The SMTP login of an inbox must still exist, and may only send from that
 * inbox. Staff must be active, with the role that the act needs. No other requester is allowed.
 *
 * @param options.lock makes changes that would end the right wait for the caller's transaction, so that the act cannot
 * happen after such a change.
 * @returns null if the requester may.
 */
export async function findRequesterProblem(
  db: Db,
  { organizationId, actor }: Requester,
  { act, permissions = [], place }: RequestedAct<DeferredAct>,
  { lock = false }: { lock?: boolean } = {},
): Promise<RequesterProblem | null> {
  if (isStaffAct(act)) return findStaffProblem(db, actor, act);
  if (!actor || organizationId === null) return 'unknown';
  if (lock) await lockRight(db, organizationId, actor);
  const needed = [...DEFERRED_ACTS[act].permissions, ...permissions];
  const owner = { organizationId: sql<string>`${organizationId}::text`, id: sql<string>`${actor.id}::text` };
  if (actor.kind === 'user') return findProblem(db, personVerdict(owner, needed));
  if (actor.kind === 'api_key') return findProblem(db, keyVerdict(owner, needed, place));
  if (actor.kind === 'connection') return findProblem(db, connectionVerdict(owner, needed, place));
  if (actor.kind === 'system' && actor.id.startsWith('inb_') && act === 'send')
    return findLoginProblem(db, actor.id, place);
  return 'unknown';
}

/** Columns that name the requester of a row: a person or a key. */
export interface RequesterColumns {
  organizationId: Expression<string | null>;
  userId: Expression<string | null>;
  keyId: Expression<string | null>;
}

/** SQL: as {@link findRequesterProblem}, for the requester in a row of the statement. Null if the requester may. */
export function requesterProblem(
  { organizationId, userId, keyId }: RequesterColumns,
  { act, permissions = [], place }: RequestedAct,
): Expression<RequesterProblem | null> {
  const eb = expressionBuilder<Tables>();
  const needed = [...DEFERRED_ACTS[act].permissions, ...permissions];
  const verdict = eb
    .case()
    .when(eb(userId, 'is not', null))
    .then(personVerdict({ organizationId, id: userId }, needed))
    .when(eb(keyId, 'is not', null))
    .then(keyVerdict({ organizationId, id: keyId }, needed, place))
    .else(sql<Verdict>`'unknown'`)
    .end();
  return sql<RequesterProblem | null>`nullif(${verdict}, 'allowed')`;
}

type Verdict = RequesterProblem | 'allowed';
interface Owner {
  organizationId: Expression<string | null>;
  id: Expression<string | null>;
}

async function findProblem(db: Db, verdict: Expression<Verdict>): Promise<RequesterProblem | null> {
  const row = await db.selectNoFrom(sql<Verdict>`${verdict}`.as('verdict')).executeTakeFirst();
  return !row || row.verdict === 'allowed' ? null : row.verdict;
}

function personVerdict(
  { organizationId, id }: Owner,
  permissions: readonly Permission[],
): Expression<Verdict> {
  const person = expressionBuilder<Tables>()
    .selectFrom('members as requester_member')
    .innerJoin('users as requester_user', 'requester_user.id', 'requester_member.user_id')
    .select((eb) =>
      eb
        .case()
        .when(
          eb.or([
            eb('requester_user.status', '<>', 'active'),
            eb('requester_user.deleted_at', 'is not', null),
          ]),
        )
        .then(sql<Verdict>`'account_closed'`)
        .when('requester_member.role', '=', anyOf(rolesWith(permissions)))
        .then(sql<Verdict>`'allowed'`)
        .else(sql<Verdict>`'permission_lost'`)
        .end()
        .as('verdict'),
    )
    .where('requester_member.org_id', '=', organizationId as Expression<string>)
    .where('requester_member.user_id', '=', id as Expression<string>);
  return sql<Verdict>`coalesce(${person}, 'not_a_member')`;
}

const rolesWith = (permissions: readonly Permission[]): MemberRole[] =>
  MEMBER_ROLES.filter((role) => permissions.every((name) => ROLE_PERMISSIONS[role].includes(name)));

function keyVerdict(
  { organizationId, id }: Owner,
  permissions: readonly Permission[],
  place: RequestedAct['place'],
): Expression<Verdict> {
  const key = expressionBuilder<Tables>()
    .selectFrom('api_keys as requester_key')
    .select((eb) =>
      eb
        .case()
        .when('requester_key.revoked_at', 'is not', null)
        .then(sql<Verdict>`'key_revoked'`)
        .when('requester_key.expires_at', '<=', sql<Date>`now()`)
        .then(sql<Verdict>`'key_expired'`)
        .when(eb.not(eb('requester_key.permissions', '@>', sql<Permission[]>`${permissions}::text[]`)))
        .then(sql<Verdict>`'permission_lost'`)
        .when(isOutOfReach('requester_key', place))
        .then(sql<Verdict>`'out_of_reach'`)
        .else(sql<Verdict>`'allowed'`)
        .end()
        .as('verdict'),
    )
    .where('requester_key.org_id', '=', organizationId as Expression<string>)
    .where('requester_key.id', '=', id as Expression<string>);
  return sql<Verdict>`coalesce(${key}, 'unknown')`;
}

/** The person decides, and then the connection, which has the permissions of both. */
function connectionVerdict(
  { organizationId, id }: Owner,
  permissions: readonly Permission[],
  place: RequestedAct['place'],
): Expression<Verdict> {
  const connection = expressionBuilder<Tables>()
    .selectFrom('connections as requester_connection')
    .select((eb) => {
      const person = personVerdict(
        { organizationId, id: eb.ref('requester_connection.user_id') },
        permissions,
      );
      return eb
        .case()
        .when('requester_connection.ended_at', 'is not', null)
        .then(sql<Verdict>`'connection_ended'`)
        .when('requester_connection.expires_at', '<=', sql<Date>`now()`)
        .then(sql<Verdict>`'connection_expired'`)
        .when(eb.not(eb('requester_connection.permissions', '@>', sql<Permission[]>`${permissions}::text[]`)))
        .then(sql<Verdict>`'permission_lost'`)
        .when(isOutOfReach('requester_connection', place))
        .then(sql<Verdict>`'out_of_reach'`)
        .else(person)
        .end()
        .as('verdict');
    })
    .where('requester_connection.org_id', '=', organizationId as Expression<string>)
    .where('requester_connection.id', '=', id as Expression<string>);
  return sql<Verdict>`coalesce(${connection}, 'unknown')`;
}

/** SQL: the key or connection of the statement does not reach the place. */
function isOutOfReach(
  table: 'requester_key' | 'requester_connection',
  place: RequestedAct['place'],
): Expression<SqlBool> {
  const eb = expressionBuilder<Tables>();
  const boundEnvironment = sql.ref<string | null>(`${table}.env_id`);
  const boundInbox = sql.ref<string | null>(`${table}.inbox_id`);
  if (!place) return sql<SqlBool>`(${boundEnvironment} is not null or ${boundInbox} is not null)`;
  const { environmentId, inboxIds } = place;
  const isBound = eb(boundInbox, 'is not', null);
  const isOtherInbox = sql<SqlBool>`not ${inboxIds}::text[] <@ array[${boundInbox}]`;
  return eb.or([
    eb(boundEnvironment, '<>', environmentId),
    inboxIds?.length ? eb.and([isBound, isOtherInbox]) : isBound,
  ]);
}

/** An SMTP login can only send from its own inbox. */
async function findLoginProblem(
  db: Db,
  inboxId: string,
  place: RequestedAct['place'],
): Promise<RequesterProblem | null> {
  if (place?.inboxIds?.join() !== inboxId) return 'out_of_reach';
  const login = await db
    .selectFrom('inbox_credentials')
    .innerJoin('inboxes', 'inboxes.id', 'inbox_credentials.inbox_id')
    .select('inboxes.id')
    .where('inbox_credentials.inbox_id', '=', inboxId)
    .where('inboxes.deleted_at', 'is', null)
    .limit(1)
    .executeTakeFirst();
  return login ? null : 'login_removed';
}

const isStaffAct = (act: DeferredAct): act is StaffAct => 'staffRoles' in DEFERRED_ACTS[act];

async function lockRight(db: Db, organizationId: string, { kind, id }: Actor): Promise<void> {
  if (kind === 'user')
    await db
      .selectFrom('members')
      .select('role')
      .where('org_id', '=', organizationId)
      .where('user_id', '=', id)
      .forShare()
      .execute();
  if (kind === 'connection')
    await db
      .selectFrom('connections')
      .innerJoin('members', (join) =>
        join
          .onRef('members.org_id', '=', 'connections.org_id')
          .onRef('members.user_id', '=', 'connections.user_id'),
      )
      .select('members.role')
      .where('connections.org_id', '=', organizationId)
      .where('connections.id', '=', id)
      .forShare()
      .execute();
  if (kind === 'api_key')
    await db
      .selectFrom('api_keys')
      .select('id')
      .where('org_id', '=', organizationId)
      .where('id', '=', id)
      .forShare()
      .execute();
}

/** Staff must be active and have a role that may do the act. */
async function findStaffProblem(
  db: Db,
  actor: Actor | null,
  act: StaffAct,
): Promise<RequesterProblem | null> {
  if (!actor) return 'unknown';
  if (actor.kind !== 'staff') return 'permission_lost';
  const member = await db
    .selectFrom('staff_members')
    .innerJoin('users', 'users.id', 'staff_members.user_id')
    .select(['staff_members.role', 'users.status', 'users.deleted_at as deletedAt'])
    .where('staff_members.user_id', '=', actor.id)
    .executeTakeFirst();
  if (!member) return 'permission_lost';
  if (member.status !== 'active' || member.deletedAt !== null) return 'account_closed';
  const mayAct = DEFERRED_ACTS[act].staffRoles.some((role) => role === member.role);
  return mayAct ? null : 'permission_lost';
}
