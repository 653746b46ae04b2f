import { type Static, Type } from 'typebox';
import type { SessionSummary } from '../../domain/sessions/session.service.ts';
import { nullableText, ref, resource, strictObject, text, timestamp } from '../schemas.ts';

export const SessionRecord = resource(
  'session',
  {
    id: text(128),
    created_at: timestamp(),
    last_seen_at: timestamp(),
    expires_at: timestamp(),
    method: text(40, { description: 'How the person signed in: password, passkey, oauth, sso, …' }),
    ip: text(64, { description: 'Address that signed in.' }),
    user_agent: nullableText(300),
    current: Type.Boolean({ description: 'The session that makes this request.' }),
  },
  { $id: 'Session', title: 'Session' },
);

export const SessionList = strictObject(
  { data: Type.Array(ref(SessionRecord), { maxItems: 100 }) },
  { description: 'All active sessions, newest first.' },
);

export const RevokeAllSessions = strictObject(
  { keep_current: Type.Optional(Type.Boolean({ description: 'Keep the session that makes this request.' })) },
  { $id: 'RevokeAllSessions', title: 'RevokeAllSessions' },
);

export function presentSession(session: SessionSummary): Static<typeof SessionRecord> {
  return {
    object: 'session',
    id: session.id,
    created_at: session.createdAt.toISOString(),
    last_seen_at: session.lastSeenAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    method: session.method,
    ip: session.ip,
    user_agent: session.userAgent,
    current: session.isCurrent,
  };
}
