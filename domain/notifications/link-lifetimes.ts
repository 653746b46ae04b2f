import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Notification } from './notification.entity.ts';
import type { TemplateName, TemplateParams } from './templates.ts';

/** The templates of emails with a secret link. */
type LinkTemplate = {
  [Name in TemplateName]: TemplateParams[Name] extends { token: string } ? Name : never;
}[TemplateName];

/** How long their links work, in hours from when the email was created. */
const LINK_LIFETIME_HOURS: Record<LinkTemplate, number> = {
  'reset-password': 1,
  'verify-email': 24,
  'confirm-new-email': 24,
  invitation: 7 * 24,
  'sso-setup-link': 7 * 24,
  'account-deleted': 30 * 24,
  'account-recoverable': 30 * 24,
  'account-deletion-reminder': 30 * 24,
};

/** When the link in the email stops working; null for an email without one. */
export function linkExpiresAt({
  template,
  createdAt,
}: Pick<Notification, 'template' | 'createdAt'>): Date | null {
  const hours = (LINK_LIFETIME_HOURS as Partial<Record<TemplateName, number>>)[template];
  return hours === undefined ? null : new Date(createdAt.getTime() + hours * 3_600_000);
}

/** Deletes the secrets of failed emails whose links have expired, which cannot be sent again. Returns their number. */
export async function deleteExpiredLinkSecrets(database: Pick<Database, 'db'>): Promise<number> {
  const { numUpdatedRows } = await database.db
    .updateTable('notifications')
    .set({ sealed_params: null })
    .where('status', '=', 'failed')
    .where('sealed_params', 'is not', null)
    .where((eb) =>
      eb.or(
        Object.entries(LINK_LIFETIME_HOURS).map(([template, hours]) =>
          eb.and([
            eb('template', '=', template as LinkTemplate),
            eb('created_at', '<', sql<Date>`now() - make_interval(hours => ${hours})`),
          ]),
        ),
      ),
    )
    .executeTakeFirst();
  return Number(numUpdatedRows);
}
