import { sql } from '@mikro-orm/core';
import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Permission } from '../identity/permissions.ts';
import { MEMBER_ROLES, type MemberRole, ROLE_PERMISSIONS } from '../identity/roles.ts';
import { buildNotificationStart } from './notification-start.ts';
import type { TemplateName, TemplateParams } from './templates.ts';

export interface OwnerNotification<Name extends TemplateName> {
  organizationId: string;
  template: Name;
  params: TemplateParams[Name];
  /** Identifies the occasion: a repeated key creates no second email. */
  dedupeKey: string;
}

export interface MemberNotification<Name extends TemplateName> extends OwnerNotification<Name> {
  /** Members whose role has it get the email. */
  permission: Permission;
}

export interface NotificationService {
  /** As {@link NotificationService.notifyOwners}, for other members. */
  notifyMembers<Name extends TemplateName>(
    transaction: Transaction,
    notification: MemberNotification<Name>,
  ): Promise<void>;
  /**
   * Creates an email to each owner of the organization. The runs that send them start after the transaction commits.
   */
  notifyOwners<Name extends TemplateName>(
    transaction: Transaction,
    notification: OwnerNotification<Name>,
  ): Promise<void>;
}

/** Maximum number of people notified. */
const MAX_MEMBERS = 100;

export function createNotificationService({
  outbox,
}: {
  outbox: Pick<Outbox, 'enqueue'>;
}): NotificationService {
  return {
    notifyOwners: (transaction, notification) => notify(transaction, outbox, ['owner'], notification),
    notifyMembers: (transaction, { permission, ...notification }) =>
      notify(transaction, outbox, rolesWith(permission), notification),
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
  const { em } = transaction;
  const members = await em.execute<{ id: string; email: string }[]>(
    sql`select u.id, u.email from members m join users u on u.id = m.user_id and u.deleted_at is null
         where m.org_id = ${organizationId} and m.role in (${roles}) order by u.id limit ${MAX_MEMBERS}`,
  );
  for (const member of members) {
    const id = newId('notification');
    const written = await em.execute<{ id: string }[]>(
      sql`insert into notifications
             (id, org_id, user_id, email, template, params, dedupe_key, status, attempts, next_attempt_at, created_at)
           values (${id}, ${organizationId}, ${member.id}, ${member.email}, ${template},
             ${JSON.stringify(params)}::jsonb, ${`${dedupeKey}/${member.id}`}, 'pending', 0, now(), now())
           on conflict (dedupe_key) do nothing returning id`,
    );
    if (written.length > 0)
      outbox.enqueue(transaction, organizationId, {
        start: buildNotificationStart({ id, organizationId, userId: member.id, template }),
      });
  }
}
