import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { Database } from '../../platform/database/database.ts';
import type { SerializedRow } from '../../platform/database/serialized-row.ts';
import { notFound } from '../../platform/errors.ts';
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

export interface SessionService {
  /** Lists the person's active sessions, newest first. There are at most 100. */
  list(person: Person): Promise<SessionSummary[]>;
  /** Takes effect with the next request. @throws AppError `not_found`. */
  revoke(person: Person, sessionId: string): Promise<void>;
  /** Returns the number of ended sessions. */
  revokeAll(person: Person, options: { keepCurrent: boolean }): Promise<number>;
}

export function createSessionService({ database }: { database: Database }): SessionService {
  return {
    list: ({ userId, sessionId }) =>
      database.peopleTransaction(async ({ em }) => {
        const rows = await em.execute<SerializedRow<Omit<SessionSummary, 'isCurrent'>>[]>(sql`
          select id, created_at as "createdAt", last_seen_at as "lastSeenAt", expires_at as "expiresAt", method, ip,
            user_agent as "userAgent"
          from sessions where user_id = ${userId} and revoked_at is null and expires_at > now() order by id desc`);
        return rows.map((row) => ({
          ...row,
          createdAt: new Date(row.createdAt),
          lastSeenAt: new Date(row.lastSeenAt),
          expiresAt: new Date(row.expiresAt),
          isCurrent: row.id === sessionId,
        }));
      }),

    revoke: ({ userId }, sessionId) =>
      database.peopleTransaction(async ({ em }) => {
        const ended = await em.execute<object[]>(sql`
          update sessions set revoked_at = now()
          where id = ${sessionId} and user_id = ${userId} and revoked_at is null and expires_at > now() returning id`);
        if (ended.length === 0) throw notFound('session', sessionId);
      }),

    revokeAll: ({ userId, sessionId }, { keepCurrent }) =>
      database.peopleTransaction(({ em }) => endSessions(em, userId, keepCurrent ? sessionId : null)),
  };
}

/**
 * Ends a person's sessions and known devices in the caller's transaction, for example because their password changed. Returns
 * the number of sessions.
 *
 * @param except the session to keep; null ends all.
 */
export async function endSessions(em: EntityManager, userId: string, except: string | null): Promise<number> {
  const ended = await em.execute<object[]>(sql`
    update sessions set revoked_at = now()
    where user_id = ${userId} and revoked_at is null and id is distinct from ${except} returning id`);
  await forgetDevices(em, userId);
  return ended.length;
}

/** Ends the sessions that an SSO configuration made, in the caller's transaction. */
export async function endSessionsOfSso(em: EntityManager, ssoConfigurationId: string): Promise<void> {
  await em.execute(sql`
    update sessions set revoked_at = now()
    where sso_configuration_id = ${ssoConfigurationId} and revoked_at is null`);
}

/** Ends one session in the caller's transaction. */
export async function endSession(em: EntityManager, sessionId: string): Promise<void> {
  await em.execute(
    sql`update sessions set revoked_at = now() where id = ${sessionId} and revoked_at is null`,
  );
}

/**
 * Records that a session has proved a second factor. One that could only enroll a factor becomes a full one.
 */
export async function addSessionFactor(
  em: EntityManager,
  sessionId: string,
  factor: SessionFactor,
): Promise<void> {
  await em.execute(sql`
    update sessions set kind = 'full', factors = array_append(array_remove(factors, ${factor}::text), ${factor}::text),
      expires_at = case when kind = 'enroll' then created_at + ${SESSION_LIFETIME_MS} * interval '1 millisecond'
        else expires_at end
    where id = ${sessionId}`);
}
