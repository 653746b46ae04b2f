import { sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { lockKey } from '../../platform/database/advisory-lock.ts';
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
/** A session that can only enroll a second factor is short: nothing else can be done with it. */
const ENROLL_LIFETIME_MS = 3_600_000;
const MAX_USER_AGENT_CHARACTERS = 300;
/** The oldest sessions of a person end when there are more. */
const MAX_SESSIONS_PER_USER = 100;

/**
 * Creates a session in the caller's transaction. Only `startSession` calls it, which applies factors and policies first.
 */
export async function createSession(em: EntityManager, session: NewSession): Promise<CreatedSession> {
  const id = newId('session');
  const token = createSessionToken();
  const now = new Date();
  const lifetimeMs = session.kind === 'enroll' ? ENROLL_LIFETIME_MS : SESSION_LIFETIME_MS;
  const expiresAt = new Date(now.getTime() + lifetimeMs);
  // Concurrent sign-ins of a person count each other's sessions and known devices.
  await lockKey(em, 'sign-in', session.userId);
  await em.execute(sql`
    insert into sessions (id, user_id, token_hash, kind, method, factors, sso_configuration_id, authenticated_at, ip,
      user_agent, last_seen_at, expires_at, created_at)
    values (${id}, ${session.userId}, ${hashSessionToken(token)}, ${session.kind}, ${session.method},
      ${`{${session.factors.join(',')}}`}::text[], ${session.ssoConfigurationId ?? null},
      ${session.authenticatedAt ?? now}, ${session.ip},
      ${session.userAgent?.slice(0, MAX_USER_AGENT_CHARACTERS) ?? null}, ${now}, ${expiresAt}, ${now})`);
  await em.execute(sql`
    update sessions set revoked_at = now() where revoked_at is null and id in (
      select id from sessions where user_id = ${session.userId} and revoked_at is null
      order by id desc offset ${MAX_SESSIONS_PER_USER})`);
  return { id, token, expiresAt };
}
