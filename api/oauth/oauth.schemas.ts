import { type Static, Type } from 'typebox';
import type { OauthLink } from '../../domain/oauth/oauth-link.service.ts';
import { MfaRequired, SessionCreated } from '../people/auth.schemas.ts';
import { nullableText, ref, resource, strictObject, text, timestamp } from '../schemas.ts';

const provider = text(40, { description: 'Id of the provider: google, github, or one of the operator’s.' });
const name = text(50, { description: 'For buttons.' });

export const OauthProviderRecord = resource(
  'oauth_provider',
  { provider, name },
  { $id: 'OauthProvider', title: 'OauthProvider' },
);
export const OauthProviderList = strictObject(
  { data: Type.Array(ref(OauthProviderRecord), { maxItems: 30 }) },
  { description: 'All providers that the operator has configured.' },
);
export const OauthLinkRecord = resource(
  'oauth_link',
  {
    provider,
    name,
    email: nullableText(320, { description: 'As the provider stated it last.' }),
    created_at: timestamp(),
    last_used_at: timestamp(),
  },
  { $id: 'OauthLink', title: 'OauthLink' },
);
export const OauthLinkList = strictObject(
  { data: Type.Array(ref(OauthLinkRecord), { maxItems: 30 }) },
  { description: 'All linked providers, oldest first.' },
);
export const OauthRedirect = resource(
  'redirect',
  {
    redirect_url: text(8_192, {
      description: 'Open it in the browser that received this response with its cookie, within ten minutes.',
    }),
  },
  { $id: 'OauthRedirect', title: 'OauthRedirect' },
);
export const redirectTo = Type.Optional(
  text(500, { description: 'Path of this service to continue at; anything else is replaced by /account.' }),
);
export const LinkOauthProvider = strictObject(
  { redirect_to: redirectTo },
  { $id: 'LinkOauthProvider', title: 'LinkOauthProvider' },
);
export const OauthLinked = resource(
  'oauth_linked',
  { linked: Type.Literal(true), provider },
  { $id: 'OauthLinked', title: 'OauthLinked' },
);
export const OauthFinished = Type.Unsafe<
  Static<typeof SessionCreated> | Static<typeof MfaRequired> | Static<typeof OauthLinked>
>({
  anyOf: [ref(SessionCreated), ref(MfaRequired), ref(OauthLinked)],
  description: 'For programs: a session, the request for the second factor, or the link.',
});

export const ProviderParams = strictObject({
  provider: text(40, {
    minLength: 1,
    description: 'Id of the provider: google, github, or one of the operator’s.',
  }),
});

export function presentOauthLink(link: OauthLink): Static<typeof OauthLinkRecord> {
  return {
    object: 'oauth_link',
    provider: link.provider,
    name: link.name,
    email: link.email,
    created_at: link.createdAt.toISOString(),
    last_used_at: link.lastUsedAt.toISOString(),
  };
}
