import { sql } from '@mikro-orm/core';
import type { RowReader } from '../../platform/database/find-rows.ts';
import type { Sql } from '../../platform/database/sql.ts';
import { DEFERRED_ACTS, type DeferredAct, type OrganizationAct, type StaffAct } from './deferred-acts.ts';
import type { Permission } from './permissions.ts';
import { MEMBER_ROLES, type MemberRole, ROLE_PERMISSIONS } from './roles.ts';
import type { Actor } from './scope.ts';

/** Why a requester may no longer do what they asked for. */
export const REQUESTER_PROBLEMS = {
  unknown: 'It is not known who asked for it.',
  key_revoked: 'The API key was revoked.',
  key_expired: 'The API key has expired.',
  account_closed: 'The account was suspended or deleted.',
  not_a_member: 'The person is no longer a member of the organization.',
  permission_lost: 'The permission was taken away.',
  out_of_reach: 'The API key does not reach it.',
  login_removed: 'The inbox has no SMTP login any more.',
} as const;
export type RequesterProblem = keyof typeof REQUESTER_PROBLEMS;

/** How a row says that its act did not happen, because its requester may no longer do it. */
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
  /** What it concerns; undefined: the organization as a whole. */
  place?: {
    environmentId: string /** Null: every inbox of the environment. */;
    inboxIds: readonly string[] | null;
  };
}

/**
 * Asks again whether the requester of an act may still do it, when it happens. Address ranges, sign-in policies and rotation
 * do not count: they limit requests.
 *
 * A key: not revoked, not expired, still with the permission, and within reach of the place. A person: active, a member, with
 * a role that has the permission. The SMTP login of an inbox: still there, for that inbox. Staff: active, with the role that
 * the act needs. No other requester may.
 *
 * @param options.lock a change that would end the right waits for the caller's transaction, so that nothing happens after it.
 * @returns null if they may.
 */
export async function findRequesterProblem(
  reader: Pick<RowReader, 'execute'>,
  requester: Requester,
  requested: RequestedAct<DeferredAct>,
  { lock = false }: { lock?: boolean } = {},
): Promise<RequesterProblem | null> {
  const { organizationId, actor } = requester;
  const { act } = requested;
  if (isStaffAct(act)) return findStaffProblem(reader, requester, act);
  if (lock) await lockRight(reader, requester);
  const idOf = (kind: Actor['kind']) => sql`${actor?.kind === kind ? actor.id : null}::text`;
  const problem = requesterProblemSql(
    {
      organizationId: sql`${organizationId}`,
      userId: idOf('user'),
      keyId: idOf('api_key'),
      inboxId: idOf('system'),
    },
    { ...requested, act },
  );
  const [row] = await reader.execute<{ problem: RequesterProblem | null }[]>(
    sql`select ${problem} as problem`,
  );
  return row ? row.problem : 'unknown';
}

/** Columns of a row that says who asked. */
export interface RequesterColumns {
  organizationId: Sql;
  userId: Sql;
  keyId: Sql;
  /** Of an inbox whose SMTP login asked. */
  inboxId?: Sql;
}

/** SQL: as {@link findRequesterProblem}, for the requester in a row. Text, null if the requester may. */
export function requesterProblemSql(
  { organizationId, userId, keyId, inboxId }: RequesterColumns,
  { act, permissions = [], place }: RequestedAct,
): Sql {
  const needed = [...new Set<Permission>([...DEFERRED_ACTS[act].permissions, ...permissions])];
  return sql`nullif(case
    when ${userId} is not null then coalesce((
      select case when u.status <> 'active' or u.deleted_at is not null then 'account_closed'
        when m.role not in (${rolesWith(needed)}) then 'permission_lost' else 'allowed' end
      from members m join users u on u.id = m.user_id
      where m.org_id = ${organizationId} and m.user_id = ${userId}), 'not_a_member')
    when ${keyId} is not null then coalesce((
      select case when k.revoked_at is not null then 'key_revoked' when k.expires_at <= now() then 'key_expired'
        when not k.permissions @> array[${needed}]::text[] then 'permission_lost'
        when ${isOutOfReach(place)} then 'out_of_reach' else 'allowed' end
      from api_keys k where k.org_id = ${organizationId} and k.id = ${keyId}), 'unknown')
    ${inboxId && act === 'send' ? sql`when ${inboxId} like 'inb\\_%' then ${loginProblem(inboxId, place)}` : sql``}
    else 'unknown' end, 'allowed')`;
}

const rolesWith = (permissions: readonly Permission[]): MemberRole[] =>
  MEMBER_ROLES.filter((role) => permissions.every((name) => ROLE_PERMISSIONS[role].includes(name)));

/** Of the key `k`. */
function isOutOfReach(place: RequestedAct['place']): Sql {
  if (!place) return sql`k.env_id is not null or k.inbox_id is not null`;
  const { environmentId, inboxIds } = place;
  const isOtherInbox = inboxIds?.length
    ? sql`not array[${[...inboxIds]}]::text[] <@ array[k.inbox_id]`
    : sql`true`;
  return sql`k.env_id <> ${environmentId} or (k.inbox_id is not null and ${isOtherInbox})`;
}

/** An SMTP login sends from its own inbox, and does nothing else. */
function loginProblem(inboxId: Sql, place: RequestedAct['place']): Sql {
  return sql`case when ${inboxId} <> ${place?.inboxIds?.join() ?? ''} then 'out_of_reach' when exists (
      select from inbox_credentials c join inboxes i on i.id = c.inbox_id and i.deleted_at is null
      where c.inbox_id = ${inboxId}) then 'allowed' else 'login_removed' end`;
}

const isStaffAct = (act: DeferredAct): act is StaffAct => 'staffRoles' in DEFERRED_ACTS[act];

async function lockRight(
  reader: Pick<RowReader, 'execute'>,
  { organizationId, actor }: Requester,
): Promise<void> {
  if (actor?.kind === 'user')
    await reader.execute(sql`
      select role from members where org_id = ${organizationId} and user_id = ${actor.id} for share`);
  if (actor?.kind === 'api_key')
    await reader.execute(sql`
      select id from api_keys where org_id = ${organizationId} and id = ${actor.id} for share`);
}

/** Staff: active, with a role that may. */
async function findStaffProblem(
  reader: Pick<RowReader, 'execute'>,
  { actor }: Requester,
  act: StaffAct,
): Promise<RequesterProblem | null> {
  const [row] = await reader.execute<{ isActive: boolean; mayAct: boolean }[]>(sql`
    select u.status = 'active' and u.deleted_at is null as "isActive",
      s.role in (${[...DEFERRED_ACTS[act].staffRoles]}) as "mayAct"
    from staff_members s join users u on u.id = s.user_id
    where s.user_id = ${actor?.kind === 'staff' ? actor.id : null}`);
  if (!row) return actor ? 'permission_lost' : 'unknown';
  if (!row.isActive) return 'account_closed';
  return row.mayAct ? null : 'permission_lost';
}
