import type { Transaction } from '../../platform/database/database.ts';
import type { OauthProvider } from '../../platform/oauth-providers.ts';
import { recordPersonAudit } from '../audit/record-audit.ts';
import type { Person } from '../identity/person.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';

/** Records that a person linked or unlinked a provider, and mails them. Runs in the transaction of the change. */
export async function announceLinkChange(
  transaction: Transaction,
  notifications: PersonNotificationService,
  {
    person,
    email,
    provider,
    change,
  }: {
    person: Pick<Person, 'userId' | 'sessionId' | 'ip' | 'requestId'>;
    /** Of the account. */
    email: string;
    provider: Pick<OauthProvider, 'id' | 'name'>;
    change: 'linked' | 'unlinked';
  },
): Promise<void> {
  await recordPersonAudit(transaction.db, person, {
    action: `user.oauth_${change}`,
    details: { provider: provider.id },
  });
  await notifications.notify(transaction, {
    userId: person.userId,
    email,
    template: `oauth-${change}`,
    params: { provider: provider.name, at: formatUtc(new Date()), ip: person.ip },
  });
}
