import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, json, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { MessageEntity } from '../messages/message.entity.ts';

/**
 * `attempting` is committed before the SMTP transaction starts. If a later step still finds this state, it is unknown
 * whether the relay accepted the message: the attempt becomes `ambiguous` and is never retried automatically.
 */
export type SendAttemptState = 'attempting' | 'accepted' | 'deferred' | 'refused' | 'ambiguous';

/** Response of an attempt that may have been made after the backup from which the database was restored. */
export const RESTORED_RESPONSE =
  'The database was restored from a backup, and the message may have been sent since the backup.';

export interface SimulatedOutcome {
  kind: 'delivered' | 'bounced' | 'complained';
  statusCode: string | null;
  diagnosticCode: string | null;
}

/** One SMTP transaction for one recipient. */
export const SendAttemptEntity = defineEntity({
  name: 'SendAttempt',
  tableName: 'send_attempts',
  policies: tenantPolicies({ staff: true }),
  indexes: [
    {
      // Provider notifications identify a message by the provider's id.
      name: 'send_attempts_provider_message_id_index',
      expression: `create index "send_attempts_provider_message_id_index" on "send_attempts" ("provider_message_id") where "provider_message_id" is not null`,
    },
  ],
  properties: {
    messageId: () =>
      p.manyToOne(MessageEntity).mapToPk().fieldName('message_id').primary().deleteRule('cascade'),
    position: p.smallint().primary(),
    number: p.smallint().primary(),
    organizationId: idColumn().fieldName('org_id'),
    state: p.text().$type<SendAttemptState>(),
    /** Whether the relay refused this recipient only, or the message for all recipients. */
    refusedScope: p.text().$type<'recipient' | 'message'>().strictNullable(),
    statusCode: p.text().strictNullable(),
    /** The relay's response, at most 1,000 characters. */
    response: p.text().strictNullable(),
    providerMessageId: p.text().strictNullable(),
    /** The relay supports DSN, so a delivery report can be expected. */
    reportsDelivery: p.boolean().default(false),
    /** The outcomes that the simulator reports immediately; null for real relays, whose reports arrive by mail. */
    simulated: json(p.json().$type<SimulatedOutcome[]>().strictNullable()),
    /** Whether the result was applied to the recipient and the message. */
    recorded: p.boolean().default(false),
    /**
     * The send was canceled while the outcome of this attempt was unknown: if the relay deferred the recipient, there is no
     * other attempt.
     */
    canceled: p.boolean().default(false),
    startedAt: timestamp(),
    finishedAt: timestamp().strictNullable(),
  },
});

export type SendAttempt = InferEntity<typeof SendAttemptEntity>;
