import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, primaryId, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { EnvironmentEntity } from '../organizations/environment.entity.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

/** `inbound`: mail from other servers. `outbound`: submission by an email client. */
export const REFUSAL_DIRECTIONS = ['inbound', 'outbound'] as const;
export type RefusalDirection = (typeof REFUSAL_DIRECTIONS)[number];

/** The SMTP command that was refused. */
export const REFUSAL_STAGES = ['connect', 'auth', 'mail', 'rcpt', 'data'] as const;
export type RefusalStage = (typeof REFUSAL_STAGES)[number];

export const REFUSAL_REASONS = [
  'unknown_mailbox',
  'sender_blocked',
  'sender_unauthenticated',
  'receive_limit',
  'catch_all_limit',
  'message_too_large',
  'too_many_hops',
  'too_slow',
  'too_busy',
  'client_disconnected',
  'temporary_failure',
  'wrong_credentials',
  'too_many_logins',
  'not_authenticated',
  'wrong_sender',
  'invalid_recipient',
  'service_paused',
  'too_many_recipients',
  'usage_limit',
  'malformed_message',
  'message_rejected',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/**
 * Mail that an SMTP listener refused. Equal refusals of an hour are one row with a count. The rows of an organization
 * and hour are limited: refusals beyond the limit are counted in one row for each reason, without addresses.
 */
export const RefusalEntity = defineEntity({
  name: 'Refusal',
  tableName: 'refusals',
  policies: tenantPolicies(),
  uniques: [{ properties: ['organizationId', 'hour', 'fingerprint'] }],
  indexes: [
    { properties: ['organizationId', 'id'] },
    { properties: ['inboxId', 'id'] },
    { properties: ['hour'] },
  ],
  properties: {
    id: primaryId(),
    organizationId: () => p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').deleteRule('cascade'),
    /** Null if the address belongs to no inbox, only to a domain of the organization. */
    environmentId: () =>
      p.manyToOne(EnvironmentEntity).mapToPk().fieldName('env_id').strictNullable().deleteRule('cascade'),
    inboxId: idColumn().strictNullable(),
    direction: p.text().$type<RefusalDirection>(),
    stage: p.text().$type<RefusalStage>(),
    reason: p.text().$type<RefusalReason>(),
    /** SMTP reply code and text of the first refusal. */
    responseCode: p.smallint(),
    response: p.text(),
    /** Envelope sender; empty for `<>`, null if unknown or beyond the limit. */
    sender: p.text().strictNullable(),
    /** The recipient that was refused; null for a login, or beyond the limit. */
    recipient: p.text().strictNullable(),
    /** Address of the last client; null beyond the limit. */
    clientIp: p.text().strictNullable(),
    count: p.integer(),
    /** UTC hour in which equal refusals are counted together. */
    hour: timestamp(),
    /** Hash of what makes two refusals equal. */
    fingerprint: p.blob(),
    firstAt: timestamp(),
    lastAt: timestamp(),
  },
});

export type Refusal = InferEntity<typeof RefusalEntity>;
