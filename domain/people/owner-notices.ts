import type { Transaction } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';
import type { AuditedScope } from '../audit/record-audit.ts';
import { isSafeName } from '../identity/safe-name.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type {
  OrganizationChangeParams,
  OrganizationTemplateParams,
} from '../notifications/organization-templates.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { TemplateParams } from '../notifications/templates.ts';
import type { OwnerChange } from '../organizations/member.service.ts';
import type { Transfer } from '../organizations/ownership.service.ts';
import type { WeakenedPolicy } from '../policies/weakened-policies.ts';

/** Templates about a change by a member or key. */
type ChangeTemplate = Exclude<keyof OrganizationTemplateParams, 'staff-access' | 'staff-access-requested'>;
type Change = Pick<AuditedScope, 'organizationId' | 'actor' | 'ip'>;
type Specific<Name extends ChangeTemplate> = Omit<
  OrganizationTemplateParams[Name],
  keyof OrganizationChangeParams
>;

export type OwnerNotices = ReturnType<typeof createOwnerNotices>;

/** Emails to the owners about changes that weaken their organization or decide who owns it, in the change's transaction. */
export function createOwnerNotices({
  notifications,
  personNotifications,
}: {
  notifications: NotificationService;
  personNotifications: PersonNotificationService;
}) {
  async function notify<Name extends ChangeTemplate>(
    transaction: Transaction,
    change: Change,
    { template, params, former }: Notice<Name>,
  ): Promise<void> {
    const { organizationId } = change;
    const dedupeKey = `${template}/${newId('notification')}`;
    const notice = {
      organizationId,
      template,
      params: { ...(await describeChange(transaction, change)), ...params } as TemplateParams[Name],
      dedupeKey,
    };
    await notifications.notifyOwners(transaction, notice);
    // The owners' emails have the same deduplication key, so a former owner who is still an owner gets no second email.
    if (former)
      await personNotifications.notify<Name>(transaction, {
        ...notice,
        params: notice.params as Omit<TemplateParams[Name], never>,
        ...former,
        dedupeKey: `${dedupeKey}/${former.userId}`,
      });
  }

  return {
    policiesWeakened: (transaction: Transaction, change: Change, policies: WeakenedPolicy[]): Promise<void> =>
      notify(transaction, change, { template: 'policies-weakened', params: { policies } }),

    ssoStopped: (transaction: Transaction, change: Change, params: Specific<'sso-stopped'>): Promise<void> =>
      notify(transaction, change, { template: 'sso-stopped', params }),

    /** Call it after the change, so that a new owner gets the email, too. A former owner also gets it. */
    ownerChanged(
      transaction: Transaction,
      change: Change,
      { userId, email, role }: OwnerChange,
    ): Promise<void> {
      return role === 'owner'
        ? notify(transaction, change, { template: 'owner-added', params: { owner: email, how: 'role' } })
        : notify(transaction, change, {
            template: 'owner-removed',
            params: { owner: email, role },
            former: { userId, email },
          });
    },

    ownershipTransferred: (transaction: Transaction, change: Change, { from, to }: Transfer): Promise<void> =>
      notify(transaction, change, {
        template: 'ownership-transferred',
        params: { from: from.email, to: to.email },
        former: from,
      }),

    /** @param joined.inviter address of the person, or id of the key, that sent the invitation. */
    ownerJoined: (
      transaction: Transaction,
      change: Change,
      { owner, inviter }: { owner: string; inviter: string },
    ): Promise<void> =>
      notify(transaction, change, {
        template: 'owner-added',
        params: { owner, how: 'invitation', by: inviter },
      }),
  };
}

interface Notice<Name extends ChangeTemplate> {
  template: Name;
  params: Specific<Name> & Partial<OrganizationChangeParams>;
  /** Gets the email in addition to the present owners. */
  former?: { userId: string; email: string };
}

async function describeChange(
  { db }: Transaction,
  { organizationId, actor, ip }: Change,
): Promise<OrganizationChangeParams> {
  const facts = await db
    .selectFrom('organizations')
    .leftJoin('users', (join) => join.on('users.id', '=', actor.id))
    .select(['organizations.name', 'users.email'])
    .where('organizations.id', '=', organizationId)
    .executeTakeFirst();
  const { name = organizationId, email } = facts ?? {};
  return {
    organizationId,
    organizationName: isSafeName(name) ? name : organizationId,
    by: email ?? (actor.kind === 'api_key' ? `API key ${actor.id}` : actor.id),
    at: formatUtc(new Date()),
    ip: ip ?? 'unknown',
  };
}
