import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Transaction } from '../../platform/database/database.ts';
import { parseTimestamp, type SerializedRow } from '../../platform/database/serialized-row.ts';
import { AppError } from '../../platform/errors.ts';
import type { Person } from '../identity/person.ts';
import { formatUtc } from '../notifications/format-utc.ts';
import type { PersonNotificationService } from '../notifications/person-notification.service.ts';
import type { MfaType } from './mfa-enrollment.entity.ts';
import { invalidCredentials } from './start-session.ts';

export interface Enrollment {
  id: string;
  type: MfaType;
  name: string;
  createdAt: Date;
  lastUsedAt: Date | null;
}

const MAX_ENROLLMENTS = 10;

/** Confirmed factors, oldest first. */
export async function findEnrollments(em: EntityManager, userId: string): Promise<Enrollment[]> {
  const rows = await em.execute<SerializedRow<Enrollment>[]>(sql`
    select id, type, name, created_at as "createdAt", last_used_at as "lastUsedAt" from mfa_enrollments
    where user_id = ${userId} and confirmed_at is not null order by id`);
  return rows.map((row) => ({
    ...row,
    createdAt: new Date(row.createdAt),
    lastUsedAt: parseTimestamp(row.lastUsedAt),
  }));
}

/** Changes of one person's factors wait for each other: only one of them is the first, or the last. */
export async function lockPerson(em: EntityManager, userId: string): Promise<void> {
  await em.execute(sql`select from users where id = ${userId} for update`);
}

/** Mails the person that their factors changed. */
export async function informPerson(
  transaction: Transaction,
  notifications: PersonNotificationService,
  person: Pick<Person, 'userId' | 'ip'>,
  template: 'mfa-added' | 'mfa-removed' | 'recovery-codes-replaced' | 'passkey-copied',
  name: string,
): Promise<void> {
  const [user] = await transaction.em.execute<{ email: string }[]>(
    sql`select email from users where id = ${person.userId}`,
  );
  if (!user) throw invalidCredentials();
  await notifications.notify(transaction, {
    userId: person.userId,
    email: user.email,
    template,
    params: { name, at: formatUtc(new Date()), ip: person.ip },
  });
}

/** @throws AppError `conflict` for a person with the maximum number of factors. */
export function requireRoomForFactor(enrollments: readonly Enrollment[]): void {
  if (enrollments.length < MAX_ENROLLMENTS) return;
  throw new AppError('conflict', {
    detail: `You have the maximum of ${MAX_ENROLLMENTS} factors.`,
    fix: 'Remove one first: DELETE /api/v1/auth/mfa/{enrollmentId}.',
  });
}
