import { sql } from '@mikro-orm/core';
import type { Database } from '../../platform/database/database.ts';
import { notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { InboxEntity } from '../inboxes/inbox.entity.ts';
import { toAddressKey } from '../mime/address-key.ts';
import type { UnsubscribeLinks, UnsubscribeTarget } from './unsubscribe-links.ts';

export interface UnsubscribeService {
  /** Returns whom the link unsubscribes; changes nothing. @throws AppError `not_found` for an invalid token. */
  read(token: string): UnsubscribeTarget;
  /**
   * Suppresses the recipient for the whole organization. Idempotent; an existing suppression is kept.
   *
   * @throws AppError `not_found` for an invalid token, or if the inbox no longer exists.
   */
  unsubscribe(token: string): Promise<void>;
}

export function createUnsubscribeService({
  database,
  links,
}: {
  database: Database;
  links: UnsubscribeLinks;
}): UnsubscribeService {
  const read = (token: string) => {
    const target = links.parse(token);
    if (!target) throw notFound('link', 'to unsubscribe');
    return target;
  };
  return {
    read,
    async unsubscribe(token) {
      const { organizationId, inboxId, email } = read(token);
      const key = toAddressKey(email);
      await database.transaction({ organizationId }, async ({ em }) => {
        const inbox = await em.findOne(InboxEntity, { id: inboxId, organizationId });
        if (!inbox || key === null) throw notFound('link', 'to unsubscribe');
        await em.execute(
          sql`insert into suppressions (id, org_id, scope_id, email, origin, env_id, inbox_id, created_at)
           values (${newId('suppression')}, ${organizationId}, ${organizationId}, ${key}, 'unsubscribe',
             ${inbox.environmentId}, ${inboxId}, now())
           on conflict (org_id, email, scope_id) do nothing`,
        );
      });
    },
  };
}
