import { sql } from 'kysely';
import type { Db } from '../../platform/database/tables.ts';
import { AppError } from '../../platform/errors.ts';

/** The switches of the whole service. All are on unless staff turn one off, which never loses mail or events. */
export const TOGGLES = {
  sign_up: {
    description: 'Whether people can sign up, which creates an account with an organization.',
    whenOff:
      'Sign-ups are refused with 403, by password and through a provider. Invitations, single sign-on and sign-ins work.',
  },
  inbox_creation: {
    description: 'Whether organizations can create inboxes.',
    whenOff: 'POST /inboxes is refused with 403. Existing inboxes work.',
  },
  sending: {
    description: 'Whether messages leave the service.',
    whenOff:
      'Messages are accepted and held; those being transmitted finish. They are sent when it is on again. Scheduled sends count from then on.',
  },
  webhook_deliveries: {
    description: 'Whether events are delivered to webhook endpoints.',
    whenOff:
      'Deliveries are held without an attempt; attempts in progress finish. They are released, oldest first, when it is on again.',
  },
  inbound_mail: {
    description: 'Whether the service accepts mail from other servers.',
    whenOff:
      'Recipients are answered with 451, and providers with 503: senders keep the mail and try again, usually for days.',
  },
} as const;

export type ToggleName = keyof typeof TOGGLES;
export const TOGGLE_NAMES = Object.keys(TOGGLES) as ToggleName[];

/**
 * SQL: staff have turned the toggle off. Each decision reads the row by its key. No process keeps a copy, so a change takes
 * effect everywhere with the next statement.
 */
export const isSwitchedOff = (name: ToggleName) =>
  sql<boolean>`exists (select from toggles where name = ${name} and not enabled)`;

export async function isOff(db: Db, name: ToggleName): Promise<boolean> {
  const row = await db.selectFrom('toggles').select('enabled').where('name', '=', name).executeTakeFirst();
  return row?.enabled === false;
}

/** @throws AppError `switched_off`. */
export async function requireOn(db: Db, name: ToggleName): Promise<void> {
  if (!(await isOff(db, name))) return;
  throw new AppError('switched_off', {
    detail: 'The operator of the service has switched this off for now.',
    fix: 'Try again later, or contact the operator.',
    extensions: { toggle: name },
  });
}
