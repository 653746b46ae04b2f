import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import { toAddressKey } from '../mime/mail-address.ts';

/** The message that bounced or was complained about. */
export interface OutcomeSource {
  organizationId: string;
  environmentId: string;
  inboxId: string;
  messageId: string;
}

export interface NegativeOutcome {
  /** Position of the recipient in the message's envelope. */
  position: number;
  email: string;
  kind: 'bounce' | 'complaint';
  status: string | null;
  diagnostic: string | null;
}

/**
 * Suppresses the addresses for the whole organization, in one statement. An existing suppression is kept, except that a
 * complaint replaces a bounce: a complaint is the stronger reason, and operators should see it before they remove the
 * suppression.
 */
export async function suppressAddresses(
  db: Db,
  { organizationId, environmentId, inboxId, messageId }: OutcomeSource,
  outcomes: readonly NegativeOutcome[],
): Promise<void> {
  const byAddress = new Map(outcomes.map((outcome) => [toAddressKey(outcome.email), outcome]));
  // Sorted, so that concurrent calls for the same addresses do not deadlock.
  const rows = [...byAddress]
    .flatMap(([email, { kind, status, diagnostic }]) =>
      email === null ? [] : [{ email, origin: kind, status, diagnostic }],
    )
    .sort((a, b) => (a.email < b.email ? -1 : 1));
  if (rows.length === 0) return;
  await db
    .insertInto('suppressions')
    .values(
      rows.map((row) => ({
        id: newId('suppression'),
        org_id: organizationId,
        scope_id: organizationId,
        env_id: environmentId,
        inbox_id: inboxId,
        message_id: messageId,
        ...row,
      })),
    )
    .onConflict((conflict) =>
      conflict
        .columns(['org_id', 'email', 'scope_id'])
        .doUpdateSet((eb) => ({
          origin: eb.ref('excluded.origin'),
          env_id: eb.ref('excluded.env_id'),
          inbox_id: eb.ref('excluded.inbox_id'),
          message_id: eb.ref('excluded.message_id'),
          status: eb.ref('excluded.status'),
          diagnostic: eb.ref('excluded.diagnostic'),
        }))
        .where('suppressions.origin', '=', 'bounce')
        .where('excluded.origin', '=', 'complaint'),
    )
    .execute();
}
