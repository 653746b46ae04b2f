import { type Static, Type } from 'typebox';
import type { SsoAttempt } from '../../domain/sso/sso-attempt.entity.ts';
import { SSO_CHECKS, type SsoCheckName } from '../../domain/sso/sso-checks.ts';
import {
  SSO_ROLES,
  SSO_STATUSES,
  SSO_TYPES,
  type SsoConfiguration,
} from '../../domain/sso/sso-configuration.entity.ts';
import { SSO_PURPOSES } from '../../domain/sso/sso-transaction.entity.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  ref,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const domains = Type.Array(text(253, { minLength: 1 }), {
  minItems: 1,
  maxItems: 50,
  description:
    'Domains of the addresses that may sign in. Each must be verified when the configuration is activated, and at every login.',
});
const name = text(100, { minLength: 1, description: 'Your name for it.' });
const defaultRole = enumOf(SSO_ROLES, { description: 'Role of people who join by their first login.' });
const issuer = text(2_048, { minLength: 1, description: 'OIDC: URL of the issuer.' });
const clientId = text(500, { minLength: 1, description: 'OIDC.' });
const clientSecret = text(2_000, { minLength: 1, description: 'OIDC. Stored encrypted and never returned.' });

export const CreateSsoConfiguration = strictObject(
  {
    type: enumOf(SSO_TYPES),
    name,
    domains,
    default_role: Type.Optional(defaultRole),
    issuer: Type.Optional(issuer),
    client_id: Type.Optional(clientId),
    client_secret: Type.Optional(clientSecret),
  },
  { $id: 'CreateSsoConfiguration', title: 'CreateSsoConfiguration' },
);
export const UpdateSsoConfiguration = strictObject(
  {
    name: Type.Optional(name),
    domains: Type.Optional(domains),
    default_role: Type.Optional(defaultRole),
    issuer: Type.Optional(issuer),
    client_id: Type.Optional(clientId),
    client_secret: Type.Optional(clientSecret),
    disabled: Type.Optional(
      Type.Literal(true, {
        description: 'Stops logins through the active configuration. Not together with other fields.',
      }),
    ),
  },
  { $id: 'UpdateSsoConfiguration', title: 'UpdateSsoConfiguration', minProperties: 1 },
);

export const SsoConfigurationRecord = strictObject(
  {
    id: id('Id of the configuration (sso_…).'),
    type: enumOf(SSO_TYPES),
    status: enumOf(SSO_STATUSES),
    name: text(100),
    issuer: nullableText(2_048, { description: 'OIDC.' }),
    client_id: nullableText(500, { description: 'OIDC.' }),
    domains: Type.Array(text(253), { maxItems: 50 }),
    default_role: enumOf(SSO_ROLES),
    replaces_id: nullableText(128, {
      description: 'The active configuration that this draft replaces when it is activated.',
    }),
    redirect_uri: nullableText(2_048, { description: 'OIDC: register it at the identity provider.' }),
    created_at: timestamp(),
    tested_at: nullableTimestamp('When a test passed with the present settings.'),
    activated_at: nullableTimestamp(),
  },
  { $id: 'SsoConfiguration', title: 'SsoConfiguration' },
);

export const SsoCheckRecord = strictObject(
  {
    name: enumOf(Object.keys(SSO_CHECKS) as SsoCheckName[]),
    passed: Type.Boolean(),
    seen: nullableText(300, { description: 'Redacted.' }),
    expected: nullableText(300),
  },
  { $id: 'SsoCheck', title: 'SsoCheck' },
);
const checks = Type.Array(ref(SsoCheckRecord), {
  maxItems: 50,
  description: 'In order, up to the first that failed.',
});

export const SsoAttemptRecord = strictObject(
  {
    id: id('Id of the attempt (sat_…).'),
    purpose: enumOf(SSO_PURPOSES),
    succeeded: Type.Boolean(),
    checks,
    created_at: timestamp(),
  },
  { $id: 'SsoAttempt', title: 'SsoAttempt' },
);

export const SsoRedirect = strictObject(
  {
    redirect_url: text(16_384, {
      description:
        'At the identity provider. Open it in the browser that received this response: its cookie is needed to finish.',
    }),
  },
  { $id: 'SsoRedirect', title: 'SsoRedirect' },
);
export const SsoTested = strictObject(
  { status: enumOf(['tested']), configuration_id: id('Id of the configuration (sso_…).'), checks },
  { $id: 'SsoTested', title: 'SsoTested' },
);
export const SsoLink = strictObject(
  { link_token: text(64, { minLength: 1, description: 'From the error account_exists.' }) },
  { $id: 'SsoLink', title: 'SsoLink' },
);

/** What this service is to identity providers. */
export interface ServiceProviderUrls {
  redirectUri: string;
}

export function presentSsoConfiguration(
  configuration: SsoConfiguration,
  { redirectUri }: ServiceProviderUrls,
): Static<typeof SsoConfigurationRecord> {
  const isOidc = configuration.type === 'oidc';
  return {
    id: configuration.id,
    type: configuration.type,
    status: configuration.status,
    name: configuration.name,
    issuer: isOidc ? configuration.issuer : null,
    client_id: configuration.clientId,
    domains: configuration.domains,
    default_role: configuration.defaultRole,
    replaces_id: configuration.replacesId,
    redirect_uri: isOidc ? redirectUri : null,
    created_at: configuration.createdAt.toISOString(),
    tested_at: configuration.testedAt?.toISOString() ?? null,
    activated_at: configuration.activatedAt?.toISOString() ?? null,
  };
}

export function presentSsoAttempt(attempt: SsoAttempt): Static<typeof SsoAttemptRecord> {
  return {
    id: attempt.id,
    purpose: attempt.purpose,
    succeeded: attempt.succeeded,
    checks: attempt.checks,
    created_at: attempt.createdAt.toISOString(),
  };
}
