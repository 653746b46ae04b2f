import { sql } from 'kysely';
import type { Database } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { Person, SessionFactor } from '../identity/person.ts';
import { SESSION_LIFETIME_MS } from './create-session.ts';
import { forgetDevices } from './known-devices.ts';

export interface SessionSummary {
  id: string;
  createdAt: Date;
  lastSeenAt: Date;
  expiresAt: Date;
  method: string;
  ip: string;
  userAgent: string | null;
  /** The session that makes the request. */
  isCurrent: boolean;
}

export type SessionService = ReturnType<typeof createSessionService>;

export function createSessionService({ database }: { database: Database }) {
  return {
    /** Lists the person's active sessions, newest first. There are at most 100. */
    list: ({ userId, sessionId }: Person): Promise<SessionSummary[]> =>
      database.peopleTransaction(async ({ db }) => {
        const rows = await db
          .selectFrom('sessions')
          .select([
            'id',
            'created_at as createdAt',
            'last_seen_at as lastSeenAt',
            'expires_at as expiresAt',
            'method',
            'ip',
            'user_agent as userAgent',
          ])
          .where('user_id', '=', userId)
          .where('revoked_at', 'is', null)
          .where('expires_at', '>', sql<Date>`now()`)
          .orderBy('id', 'desc')
          .execute();
        return rows.map((row) => ({ ...row, isCurrent: row.id === sessionId }));
      }),

    /** Takes effect with the next request. @throws AppError `not_found`. */
    revoke: ({ userId }: Person, sessionId: string): Promise<void> =>
      database.peopleTransaction(async ({ db }) => {
        const { numUpdatedRows } = await db
          .updateTable('sessions')
          .set({ revoked_at: sql<Date>`now()` })
          .where('id', '=', sessionId)
          .where('user_id', '=', userId)
          .where('revoked_at', 'is', null)
          .where('expires_at', '>', sql<Date>`now()`)
          .executeTakeFirst();
        if (numUpdatedRows === 0n) throw notFound('session', sessionId);
      }),

    /** Also ends the person's connections. Returns the number of ended sessions. */
    revokeAll: ({ userId, sessionId }: Person, { keepCurrent }: { keepCurrent: boolean }): Promise<number> =>
      database.peopleTransaction(({ db }) => endSessions(db, userId, keepCurrent ? sessionId : null)),
  };
}

/**
 * Ends a person's sessions, known devices and connections in the caller's transaction, for example because their password
 * changed: a stranger who knew it may have signed in, and may have connected a program. Returns the number of sessions.
 *
 * @param except the session to keep; null ends all.
 */
export async function endSessions(db: Db, userId: string, except: string | null): Promise<number> {
  const { numUpdatedRows } = await db
    .updateTable('sessions')
    .set({ revoked_at: sql<Date>`now()` })
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where('id', 'is distinct from', except)
    .executeTakeFirst();
  await forgetDevices(db, userId);
  await endConnections(db, ['user_id', userId]);
  return Number(numUpdatedRows);
}

/** The caller's change has an entry in the audit log of its own; each connection gets one for its organization. */
async function endConnections(
  db: Db,
  [column, id]: ['user_id' | 'sso_configuration_id', string],
): Promise<void> {
  const ended = await db
    .updateTable('connections')
    .set({ ended_at: sql<Date>`now()`, end_reason: 'sign_out' })
    .where(column, '=', id)
    .where('ended_at', 'is', null)
    .returning(['id', 'org_id as organizationId', 'user_id as userId'])
    .execute();
  for (const connection of ended)
    await recordAudit(
      db,
      {
        organizationId: connection.organizationId,
        actor: { kind: 'system', id: connection.id },
        requestId: newId('request'),
      },
      {
        action: 'connection.ended',
        resourceType: 'connection',
        resourceId: connection.id,
        details: { cause: 'sign_out', user_id: connection.userId },
      },
    );
}

/** Ends the sessions that an SSO configuration started, and the connections granted in them, in the caller's transaction. */
export async function endSessionsOfSso(db: Db, ssoConfigurationId: string): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ revoked_at: sql<Date>`now()` })
    .where('sso_configuration_id', '=', ssoConfigurationId)
    .where('revoked_at', 'is', null)
    .execute();
  await endConnections(db, ['sso_configuration_id', ssoConfigurationId]);
}

/** Ends one session in the caller's transaction. */
export async function endSession(db: Db, sessionId: string): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ revoked_at: sql<Date>`now()` })
    .where('id', '=', sessionId)
    .where('revoked_at', 'is', null)
    .execute();
}

/** Records that a session has proved a second factor. A session that could only enroll a factor becomes a full session. */
export async function addSessionFactor(db: Db, sessionId: string, factor: SessionFactor): Promise<void> {
  await db
    .updateTable('sessions')
    .set({
      kind: 'full',
      factors: sql<SessionFactor[]>`array_append(array_remove(factors, ${factor}::text), ${factor}::text)`,
      expires_at: sql<Date>`case when kind = 'enroll' then created_at + ${SESSION_LIFETIME_MS} * interval '1 millisecond'
        else expires_at end`,
    })
    .where('id', '=', sessionId)
    .execute();
}
