import { type Static, Type } from 'typebox';
import { SUPPRESSION_ORIGINS, type Suppression } from '../../domain/deliverability/suppression.entity.ts';
import { enumOf, MAX_ID_LENGTH, nullableText, strictObject, text, timestamp } from '../schemas.ts';

export const SuppressionRecord = strictObject(
  {
    email: text(320, { description: 'In lower case, the domain in its ASCII form.' }),
    origin: enumOf(SUPPRESSION_ORIGINS, {
      description:
        'bounce: the address is bad. complaint: its owner called a mail spam. manual: added by hand.',
    }),
    message_id: nullableText(MAX_ID_LENGTH, {
      description: 'The message that bounced or was complained of; null for manual.',
    }),
    inbox_id: nullableText(MAX_ID_LENGTH, { description: 'The inbox it comes from; null where none.' }),
    env_id: nullableText(MAX_ID_LENGTH, { description: 'The environment it comes from; null where none.' }),
    status: nullableText(32, { description: 'Enhanced status code (RFC 3463) of the bounce.' }),
    diagnostic: nullableText(1024, { description: 'What the server said.' }),
    created_at: timestamp(),
  },
  { $id: 'Suppression', title: 'Suppression' },
);

export const CreateSuppression = strictObject(
  { email: text(320, { minLength: 3 }) },
  { $id: 'CreateSuppression', title: 'CreateSuppression' },
);

export const suppressionQueryFields = {
  email: Type.Optional(text(320, { minLength: 1, description: 'This address alone.' })),
  origin: Type.Optional(enumOf(SUPPRESSION_ORIGINS)),
};

export function presentSuppression(suppression: Suppression): Static<typeof SuppressionRecord> {
  return {
    email: suppression.email,
    origin: suppression.origin,
    message_id: suppression.messageId,
    inbox_id: suppression.inboxId,
    env_id: suppression.environmentId,
    status: suppression.status,
    diagnostic: suppression.diagnostic,
    created_at: suppression.createdAt.toISOString(),
  };
}
