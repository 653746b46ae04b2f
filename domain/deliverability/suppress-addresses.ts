import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { newId } from '../../platform/ids.ts';
import { toAddressKey } from '../mime/address-key.ts';

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
 * Suppresses the addresses for the whole organization, in one statement. An existing suppression is kept, except that a complaint replaces a
 * bounce: a complaint is the stronger reason, and operators should see it before they remove the suppression.
 */
export async function suppressAddresses(
  em: EntityManager,
  { organizationId, environmentId, inboxId, messageId }: OutcomeSource,
  outcomes: readonly NegativeOutcome[],
): Promise<void> {
  const rows = new Map<string, object>();
  for (const { email, kind, status, diagnostic } of outcomes) {
    const key = toAddressKey(email);
    if (key !== null)
      rows.set(key, { id: newId('suppression'), email: key, origin: kind, status, diagnostic });
  }
  if (rows.size === 0) return;
  // Sorted, so that concurrent calls for the same addresses do not deadlock.
  const sorted = [...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, row]) => row);
  await em.execute(
    sql`insert into suppressions (id, org_id, scope_id, email, origin, env_id, inbox_id, message_id, status, diagnostic, created_at)
     select r.id, ${organizationId}, ${organizationId}, r.email, r.origin, ${environmentId}, ${inboxId}, ${messageId}, r.status, r.diagnostic, now()
     from jsonb_to_recordset(${JSON.stringify(sorted)}::jsonb) as r(
       id text, email text, origin text, status text, diagnostic text)
     on conflict (org_id, email, scope_id) do update set origin = excluded.origin, env_id = excluded.env_id,
       inbox_id = excluded.inbox_id, message_id = excluded.message_id, status = excluded.status,
       diagnostic = excluded.diagnostic
     where suppressions.origin = 'bounce' and excluded.origin = 'complaint'`,
  );
}
