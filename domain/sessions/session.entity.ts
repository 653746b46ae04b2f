import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { createdAt, idColumn, oneOf, primaryId, timestamp } from '../../platform/database/columns.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import type { SessionFactor, SessionKind, SessionMethod } from '../identity/person.ts';
import { UserEntity } from '../people/user.entity.ts';

/** A person's sign-in on one device. The token itself is returned once and never stored. */
export const SessionEntity = defineEntity({
  name: 'Session',
  tableName: 'sessions',
  indexes: [{ properties: ['userId', 'id'] }, { properties: ['expiresAt'] }],
  checks: [{ name: 'sessions_kind', expression: oneOf('kind', ['full', 'enroll']) }],
  triggers: [
    functionTrigger({
      name: 'signal_sessions_access',
      table: 'sessions',
      event: 'update',
      when: 'old.revoked_at is distinct from new.revoked_at',
      calls: 'signal_access',
    }),
    functionTrigger({
      name: 'signal_sessions_access_end',
      table: 'sessions',
      event: 'delete',
      calls: 'signal_access',
    }),
  ],
  properties: {
    id: primaryId(),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    tokenHash: p.blob().unique(),
    kind: p.text().$type<SessionKind>(),
    method: p.text().$type<SessionMethod>(),
    factors: p.array().$type<SessionFactor[]>(),
    /** The SSO configuration that signed the person in. No foreign key: the session ends with the configuration. */
    ssoConfigurationId: idColumn().strictNullable(),
    authenticatedAt: timestamp(),
    /** Address and browser of the sign-in, which the person sees in the list of their sessions. */
    ip: p.text(),
    userAgent: p.text().strictNullable(),
    /** Updated at most once a minute. */
    lastSeenAt: timestamp(),
    expiresAt: timestamp(),
    revokedAt: timestamp().strictNullable(),
    createdAt: createdAt(),
  },
});

export type Session = InferEntity<typeof SessionEntity>;

/**
 * A browser in which a person has completed a sign-in. Its failed attempts count separately, so that strangers who guess the
 * password cannot lock the person out. A known device proves nothing: password and second factor are still required.
 */
export const KnownDeviceEntity = defineEntity({
  name: 'KnownDevice',
  tableName: 'known_devices',
  indexes: [{ properties: ['userId'] }, { properties: ['expiresAt'] }],
  properties: {
    /** Hash of the token in the browser's cookie. A browser has one token for each person. */
    tokenHash: p.blob().primary(),
    userId: () => p.manyToOne(UserEntity).mapToPk().fieldName('user_id').deleteRule('cascade'),
    /** Failed attempts since the last complete sign-in. */
    failures: p.integer(),
    createdAt: createdAt(),
    /** When a later sign-in in the browser was completed; null if there was none. */
    lastUsedAt: timestamp().strictNullable(),
    expiresAt: timestamp(),
  },
});
