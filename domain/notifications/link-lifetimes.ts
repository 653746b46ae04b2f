import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { joinSql } from '../../platform/database/sql.ts';
import type { Notification } from './notification.entity.ts';
import type { TemplateName, TemplateParams } from './templates.ts';

/** The emails with a secret link. */
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

/** Forgets the secrets of failed emails that can no longer be sent again. Returns their number. */
export async function forgetExpiredLinks(database: Pick<Database, 'query'>): Promise<number> {
  const lifetimes = Object.entries(LINK_LIFETIME_HOURS).map(
    ([template, hours]) => sql`(${template}, ${hours})`,
  );
  const forgotten = await database.query<object>(sql`
    update notifications n set sealed_params = null
    from (values ${joinSql(lifetimes, ', ')}) link (template, hours)
    where n.status = 'failed' and n.sealed_params is not null and n.template = link.template
      and n.created_at < now() - link.hours::int * interval '1 hour' returning n.id`);
  return forgotten.length;
}
