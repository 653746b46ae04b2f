import { type Static, Type } from 'typebox';
import {
  REFUSAL_DIRECTIONS,
  REFUSAL_REASONS,
  REFUSAL_STAGES,
  type Refusal,
} from '../../domain/refusals/refusal.entity.ts';
import { enumOf, id, MAX_ID_LENGTH, nullableText, resource, text, timestamp } from '../schemas.ts';

export const RefusalRecord = resource(
  'refusal',
  {
    id: id('Refusal id (ref_…).'),
    direction: enumOf(REFUSAL_DIRECTIONS, {
      description: 'inbound: mail from another server. outbound: an email client at the submission port.',
    }),
    stage: enumOf(REFUSAL_STAGES, {
      description: 'The SMTP command that was refused; data is the message itself.',
    }),
    reason: enumOf(REFUSAL_REASONS),
    response_code: Type.Integer({ minimum: 200, maximum: 599, description: 'SMTP reply code.' }),
    response: text(500, { description: 'The reply that the sender got.' }),
    from_address: nullableText(320, {
      description: 'Envelope sender; empty for delivery reports, null if unknown or summarized.',
    }),
    to: nullableText(320, { description: 'The refused recipient; null for a login, or if summarized.' }),
    client_ip: nullableText(64, { description: 'The last client; null if summarized.' }),
    inbox_id: nullableText(MAX_ID_LENGTH, { description: 'Null if the address belongs to no inbox.' }),
    env_id: nullableText(MAX_ID_LENGTH),
    count: Type.Integer({ minimum: 1, description: 'Number of equal refusals within the hour.' }),
    first_at: timestamp(),
    last_at: timestamp(),
  },
  { $id: 'Refusal', title: 'Refusal' },
);

export const refusalQueryFields = {
  inbox_id: Type.Optional(id('Only of this inbox.')),
  direction: Type.Optional(
    enumOf(REFUSAL_DIRECTIONS, { description: 'inbound: mail to you; outbound: from an email client.' }),
  ),
  reason: Type.Optional(enumOf(REFUSAL_REASONS, { description: 'Only refusals for this reason.' })),
  from: Type.Optional(text(320, { minLength: 1, description: 'Only from this envelope sender.' })),
  to: Type.Optional(text(320, { minLength: 1, description: 'Only to this recipient.' })),
};

export function presentRefusal(refusal: Refusal): Static<typeof RefusalRecord> {
  return {
    object: 'refusal',
    id: refusal.id,
    direction: refusal.direction,
    stage: refusal.stage,
    reason: refusal.reason,
    response_code: refusal.responseCode,
    response: refusal.response,
    from_address: refusal.sender,
    to: refusal.recipient,
    client_ip: refusal.clientIp,
    inbox_id: refusal.inboxId,
    env_id: refusal.environmentId,
    count: refusal.count,
    first_at: refusal.firstAt.toISOString(),
    last_at: refusal.lastAt.toISOString(),
  };
}
