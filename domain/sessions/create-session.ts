import { sql } from 'kysely';
import { lockKey } from '../../platform/database/advisory-lock.ts';
import type { Db } from '../../platform/database/tables.ts';
import { newId } from '../../platform/ids.ts';
import type { SessionFactor, SessionKind, SessionMethod } from '../identity/person.ts';
import { createSessionToken, hashSessionToken } from './session-token.ts';

export interface NewSession {
  userId: string;
  kind: SessionKind;
  method: SessionMethod;
  factors: readonly SessionFactor[];
  ssoConfigurationId?: string | null;
  /** When the person proved who they are; default: now. */
  authenticatedAt?: Date;
  ip: string;
  userAgent: string | null;
}

export interface CreatedSession {
  id: string;
  /** Not stored. */
  token: string;
  expiresAt: Date;
}

/** A session ends this long after the person signed in, whatever they do. */
export const SESSION_LIFETIME_MS = 30 * 86_400_000;
/** Lifetime of a session that can do nothing but enroll a second factor. */
const ENROLL_LIFETIME_MS = 3_600_000;
const MAX_USER_AGENT_CHARACTERS = 300;
/** A person's oldest sessions end beyond this number. */
const MAX_SESSIONS_PER_USER = 100;

/**
 * Creates a session in the caller's transaction. Only `startSession` calls it, after it has applied factors and policies.
 */
export async function createSession(db: Db, session: NewSession): Promise<CreatedSession> {
  const id = newId('session');
  const token = createSessionToken();
  const now = new Date();
  const lifetimeMs = session.kind === 'enroll' ? ENROLL_LIFETIME_MS : SESSION_LIFETIME_MS;
  const expiresAt = new Date(now.getTime() + lifetimeMs);
  // Concurrent sign-ins of a person count each other's sessions and known devices.
  await lockKey(db, 'sign-in', session.userId);
  await db
    .insertInto('sessions')
    .values({
      id,
      user_id: session.userId,
      token_hash: hashSessionToken(token),
      kind: session.kind,
      method: session.method,
      factors: [...session.factors],
      sso_configuration_id: session.ssoConfigurationId ?? null,
      authenticated_at: session.authenticatedAt ?? now,
      ip: session.ip,
      user_agent: session.userAgent?.slice(0, MAX_USER_AGENT_CHARACTERS) ?? null,
      last_seen_at: now,
      expires_at: expiresAt,
      revoked_at: null,
      created_at: now,
    })
    .execute();
  await endOldestSessions(db, session.userId);
  return { id, token, expiresAt };
}

async function endOldestSessions(db: Db, userId: string): Promise<void> {
  await db
    .updateTable('sessions')
    .set({ revoked_at: sql<Date>`now()` })
    .where('revoked_at', 'is', null)
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('sessions')
        .select('id')
        .where('user_id', '=', userId)
        .where('revoked_at', 'is', null)
        .orderBy('id', 'desc')
        .offset(MAX_SESSIONS_PER_USER),
    )
    .execute();
}
