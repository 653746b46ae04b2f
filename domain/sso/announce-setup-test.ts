import type { Transaction } from '../../platform/database/database.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { SsoSettings } from './sso-settings.ts';
import { IS_LIVE_SETUP_LINK } from './sso-setup-link.service.ts';

/** Informs the owners and the creator of the set-up link, if there is one, that the draft can be activated. */
export async function announceSetupTest(
  transaction: Transaction,
  {
    notifications,
    ownerNotifications,
  }: { notifications: PersonNotificationService; ownerNotifications: NotificationService },
  { id, organizationId, version, issuer, domains, defaultRole }: SsoSettings,
): Promise<void> {
  const link = await transaction.db
    .selectFrom('sso_setup_links as l')
    .innerJoin('organizations as o', 'o.id', 'l.org_id')
    .innerJoin('sso_configurations as c', (join) =>
      join.onRef('c.id', '=', 'l.configuration_id').on('c.activated_at', 'is', null),
    )
    .leftJoin('users as u', 'u.id', 'l.created_by_user_id')
    .select(['c.name', 'u.id as creatorId', 'u.email as creatorEmail'])
    .where('l.configuration_id', '=', id)
    .where(IS_LIVE_SETUP_LINK)
    .executeTakeFirst();
  if (!link) return;
  const { name, creatorId, creatorEmail } = link;
  const template = 'sso-setup-tested';
  const params = {
    organizationId,
    configurationId: id,
    name,
    issuer: issuer ?? '',
    domains: domains.join(', '),
    defaultRole,
  };
  const dedupeKey = `${template}/${id}/${version}`;
  await ownerNotifications.notifyOwners(transaction, { organizationId, template, params, dedupeKey });
  // The owners' emails have the same deduplication key, so an owner who created the link gets no second email.
  if (creatorId !== null && creatorEmail !== null)
    await notifications.notify(transaction, {
      organizationId,
      userId: creatorId,
      email: creatorEmail,
      template,
      params,
      dedupeKey: `${dedupeKey}/${creatorId}`,
    });
}
