import type { Database } from '../../platform/database/database.ts';
import { notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { toAddressKey } from '../mime/mail-address.ts';
import type { UnsubscribeLinks, UnsubscribeTarget } from './unsubscribe-links.ts';

export type UnsubscribeService = ReturnType<typeof createUnsubscribeService>;

export function createUnsubscribeService({
  database,
  links,
}: {
  database: Database;
  links: UnsubscribeLinks;
}) {
  const read = (token: string): UnsubscribeTarget => {
    const target = links.parse(token);
    if (!target) throw notFound('link', 'to unsubscribe');
    return target;
  };
  return {
    /**
     * Returns who would unsubscribe with the link, and changes nothing. @throws AppError `not_found` for an invalid
     * token.
     */
    read,

    /**
     * Suppresses the recipient for the whole organization. Idempotent; an existing suppression is kept.
     *
     * @throws AppError `not_found` for an invalid token, or if the inbox no longer exists.
     */
    async unsubscribe(token: string): Promise<void> {
      const { organizationId, inboxId, email } = read(token);
      const key = toAddressKey(email);
      await database.transaction({ organizationId }, async ({ db }) => {
        const inbox = await db
          .selectFrom('inboxes')
          .select('env_id as environmentId')
          .where('id', '=', inboxId)
          .where('org_id', '=', organizationId)
          .executeTakeFirst();
        if (!inbox || key === null) throw notFound('link', 'to unsubscribe');
        await db
          .insertInto('suppressions')
          .values({
            id: newId('suppression'),
            org_id: organizationId,
            scope_id: organizationId,
            email: key,
            origin: 'unsubscribe',
            env_id: inbox.environmentId,
            inbox_id: inboxId,
          })
          .onConflict((conflict) => conflict.columns(['org_id', 'email', 'scope_id']).doNothing())
          .execute();
      });
    },
  };
}
