import { type Static, Type } from 'typebox';
import {
  SUPPRESSION_ORIGINS,
  SUPPRESSION_SCOPES,
  type Suppression,
  scopeOfSuppression,
} from '../../domain/deliverability/suppression.entity.ts';
import { minimalOf } from '../minimal-response.ts';
import { enumOf, MAX_ID_LENGTH, nullableText, resource, strictObject, text, timestamp } from '../schemas.ts';

export const SuppressionRecord = resource(
  'suppression',
  {
    email: text(320, { description: 'In lower case, the domain in its ASCII form.' }),
    origin: enumOf(SUPPRESSION_ORIGINS, {
      description:
        'bounce: the address is invalid. complaint: the recipient reported a message as spam. manual: added through the API.',
    }),
    scope: enumOf(SUPPRESSION_SCOPES, {
      description:
        'Where it applies. A bounce or complaint suppresses for the whole organization, a bound credential for its own environment or inbox.',
    }),
    message_id: nullableText(MAX_ID_LENGTH, {
      description: 'The message that bounced or was complained about; null for manual.',
    }),
    inbox_id: nullableText(MAX_ID_LENGTH, { description: 'The inbox it originates from; null if none.' }),
    env_id: nullableText(MAX_ID_LENGTH, { description: 'The environment it originates from; null if none.' }),
    status: nullableText(32, { description: 'Enhanced status code (RFC 3463) of the bounce.' }),
    diagnostic: nullableText(1024, { description: 'The response of the remote server.' }),
    created_at: timestamp(),
  },
  { $id: 'Suppression', title: 'Suppression' },
);

/** The address is the identifier of a suppression. */
export const MinimalSuppression = minimalOf(SuppressionRecord, ['email', 'scope']);
/** Spread into the config of changes that return a suppression. */
export const SUPPRESSION_RESPONSE = {
  readPermission: 'suppressions:read',
  minimalResponse: MinimalSuppression,
} as const;

export const CreateSuppression = strictObject(
  { email: text(320, { minLength: 3 }) },
  { $id: 'CreateSuppression', title: 'CreateSuppression' },
);

export const suppressionQueryFields = {
  email: Type.Optional(text(320, { minLength: 1, description: 'Return only this address.' })),
  search: Type.Optional(
    text(320, { minLength: 1, description: 'Only addresses that contain this text, in any case.' }),
  ),
  origin: Type.Optional(enumOf(SUPPRESSION_ORIGINS, { description: 'Only those with this origin.' })),
};

export function presentSuppression(suppression: Suppression): Static<typeof SuppressionRecord> {
  return {
    object: 'suppression',
    email: suppression.email,
    origin: suppression.origin,
    scope: scopeOfSuppression(suppression),
    message_id: suppression.messageId,
    inbox_id: suppression.inboxId,
    env_id: suppression.environmentId,
    status: suppression.status,
    diagnostic: suppression.diagnostic,
    created_at: suppression.createdAt.toISOString(),
  };
}
