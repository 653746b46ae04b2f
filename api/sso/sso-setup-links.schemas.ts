import { type Static, Type } from 'typebox';
import type { SsoSetupLink } from '../../domain/sso/sso-setup-link.entity.ts';
import {
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

export const CreateSsoSetupLink = strictObject(
  {
    email: Type.Optional(
      orNull(
        text(254, {
          minLength: 3,
          description: 'The link is mailed there, with the name of the organization and your address.',
        }),
      ),
    ),
  },
  { $id: 'CreateSsoSetupLink', title: 'CreateSsoSetupLink' },
);

const linkId = id('Id of the set-up link (ssl_…).');

export const CreatedSsoSetupLink = resource(
  'sso_setup_link',
  {
    id: linkId,
    url: text(2_048, { description: 'Shown only now. It is as good as a password.' }),
    expires_at: timestamp(),
  },
  { $id: 'CreatedSsoSetupLink', title: 'CreatedSsoSetupLink' },
);

export const SsoSetupLinkRecord = resource(
  'sso_setup_link',
  {
    id: linkId,
    email: nullableText(254, { description: 'Null if the link was not mailed.' }),
    configuration_id: nullableText(128, { description: 'The draft that was created with it.' }),
    created_by_user_id: nullableText(128, { description: 'Null if an API key created it.' }),
    created_by_key_id: nullableText(128),
    created_at: timestamp(),
    used_at: nullableTimestamp('When a browser used it.'),
    expires_at: timestamp('End of the link; once it is used, of its session.'),
  },
  { $id: 'SsoSetupLink', title: 'SsoSetupLink' },
);

export function presentSsoSetupLink(link: SsoSetupLink): Static<typeof SsoSetupLinkRecord> {
  return {
    object: 'sso_setup_link',
    id: link.id,
    email: link.email,
    configuration_id: link.configurationId,
    created_by_user_id: link.createdByUserId,
    created_by_key_id: link.createdByKeyId,
    created_at: link.createdAt.toISOString(),
    used_at: link.usedAt?.toISOString() ?? null,
    expires_at: link.expiresAt.toISOString(),
  };
}
