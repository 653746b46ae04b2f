import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { idColumn, timestamp } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { MessageEntity } from '../messages/message.entity.ts';

/**
 * `attempting` is committed before the relay is spoken to. A row still `attempting` when somebody looks again means
 * that nobody knows whether the mail left: it is then `ambiguous`, never tried again by itself.
 */
export type SendAttemptState = 'attempting' | 'accepted' | 'deferred' | 'refused' | 'ambiguous';

export interface SimulatedOutcome {
  kind: 'delivered' | 'bounced' | 'complained';
  statusCode: string | null;
  diagnosticCode: string | null;
}

/** One SMTP transaction for one recipient. */
export const SendAttemptEntity = defineEntity({
  name: 'SendAttempt',
  tableName: 'send_attempts',
  policies: tenantPolicies(),
  indexes: [
    {
      // What a provider calls a mail is what its notifications name.
      name: 'send_attempts_provider_message_id_index',
      expression: `create index "send_attempts_provider_message_id_index" on "send_attempts" ("provider_message_id") where "provider_message_id" is not null`,
    },
  ],
  properties: {
    messageId: () => p.manyToOne(MessageEntity).mapToPk().primary().deleteRule('cascade'),
    position: p.smallint().primary(),
    number: p.smallint().primary(),
    organizationId: idColumn().fieldName('org_id'),
    state: p.text().$type<SendAttemptState>(),
    /** Which part of the message the relay refused: the recipient alone, or the message for everybody. */
    refusedScope: p.text().$type<'recipient' | 'message'>().strictNullable(),
    statusCode: p.text().strictNullable(),
    /** The relay's answer, at most 1,000 characters. */
    response: p.text().strictNullable(),
    providerMessageId: p.text().strictNullable(),
    /** The relay promised a report of success (DSN); without that nobody waits for one. */
    reportsDelivery: p.boolean().default(false),
    /** What the simulator says becomes of the mail; empty for real relays, whose reports come by mail. */
    simulated: p.json().$type<SimulatedOutcome[]>().strictNullable(),
    /** Folded into recipient and message. */
    recorded: p.boolean().default(false),
    startedAt: timestamp(),
    finishedAt: timestamp().strictNullable(),
  },
});

export type SendAttempt = InferEntity<typeof SendAttemptEntity>;
