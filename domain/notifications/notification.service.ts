import { anyOf } from '../../platform/database/any-of.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { DUE_NOW } from '../../platform/database/database-time.ts';
import { json } from '../../platform/database/json.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Permission } from '../identity/permissions.ts';
import { MEMBER_ROLES, type MemberRole, ROLE_PERMISSIONS } from '../identity/roles.ts';
import { buildNotificationStart } from './notification-run.ts';
import type { TemplateName, TemplateParams } from './templates.ts';

export interface OwnerNotification<Name extends TemplateName> {
  organizationId: string;
  template: Name;
  params: TemplateParams[Name];
  /** Identifies the occasion. A repeated key creates no second email. */
  dedupeKey: string;
}

export interface MemberNotification<Name extends TemplateName> extends OwnerNotification<Name> {
  /** Members whose role has this permission get the email. */
  permission: Permission;
}

export type NotificationService = ReturnType<typeof createNotificationService>;

/** Maximum number of people notified. */
const MAX_MEMBERS = 100;

export function createNotificationService({ outbox }: { outbox: Pick<Outbox, 'enqueue'> }) {
  return {
    /** Creates an email to each owner of the organization. The runs that send them start after the transaction commits. */
    notifyOwners: <Name extends TemplateName>(
      transaction: Transaction,
      notification: OwnerNotification<Name>,
    ): Promise<void> => notify(transaction, outbox, ['owner'], notification),

    /** Like `notifyOwners`, for the members whose role has the permission. */
    notifyMembers: <Name extends TemplateName>(
      transaction: Transaction,
      { permission, ...notification }: MemberNotification<Name>,
    ): Promise<void> =>
      notify(transaction, outbox, rolesWith(permission), notification as OwnerNotification<Name>),
  };
}

const rolesWith = (permission: Permission): MemberRole[] =>
  MEMBER_ROLES.filter((role) => ROLE_PERMISSIONS[role].includes(permission));

async function notify<Name extends TemplateName>(
  transaction: Transaction,
  outbox: Pick<Outbox, 'enqueue'>,
  roles: MemberRole[],
  { organizationId, template, params, dedupeKey }: OwnerNotification<Name>,
): Promise<void> {
  const { db } = transaction;
  const members = await findMembers(db, organizationId, roles);
  if (members.length === 0) return;
  const emails = members.map((member) => ({
    id: newId('notification'),
    userId: member.id,
    to: member.email,
  }));
  const written = await db
    .insertInto('notifications')
    .values(
      emails.map(({ id, userId, to }) => ({
        id,
        org_id: organizationId,
        user_id: userId,
        email: to,
        template,
        params: json(params as Record<string, unknown>),
        dedupe_key: `${dedupeKey}/${userId}`,
        next_attempt_at: DUE_NOW,
      })),
    )
    .onConflict((conflict) => conflict.column('dedupe_key').doNothing())
    .returning('id')
    .execute();
  const created = new Set(written.map(({ id }) => id));
  for (const { id, userId } of emails.filter((email) => created.has(email.id)))
    outbox.enqueue(transaction, organizationId, {
      start: buildNotificationStart({ id, organizationId, userId, template }),
    });
}

function findMembers(db: Db, organizationId: string, roles: MemberRole[]) {
  return db
    .selectFrom('members')
    .innerJoin('users', 'users.id', 'members.user_id')
    .select(['users.id', 'users.email'])
    .where('members.org_id', '=', organizationId)
    .where('members.role', '=', anyOf(roles))
    .where('users.deleted_at', 'is', null)
    .orderBy('users.id')
    .limit(MAX_MEMBERS)
    .execute();
}
