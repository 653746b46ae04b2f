import { type Static, Type } from 'typebox';
import { SSO_CHECKS, type SsoCheckName } from '../../domain/sso/sso-checks.ts';
import { SSO_ROLES, SSO_STATUSES, SSO_TYPES } from '../../domain/sso/sso-configuration.entity.ts';
import type { SsoConfigurationRow, SsoConfigurationView } from '../../domain/sso/sso-configuration-views.ts';
import { SSO_PURPOSES, type SsoAttempt } from '../../domain/sso/sso-login.entity.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  ref,
  resource,
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
const metadataXml = text(262_144, {
  minLength: 1,
  description: 'SAML: the metadata of the identity provider. Either this or idp_metadata_url.',
});
const metadataUrl = text(2_048, { minLength: 1, description: 'SAML: read now, and daily.' });
const allowIdpInitiated = Type.Boolean({
  description: 'SAML: logins may begin at the identity provider. The person then has to agree on a page.',
});
const issuer = text(2_048, { minLength: 1, description: 'OIDC: URL of the issuer.' });
const clientId = text(500, { minLength: 1, description: 'OIDC.' });
const clientSecret = text(2_000, { minLength: 1, description: 'OIDC. Stored encrypted and never returned.' });

export const CreateSsoConfiguration = strictObject(
  {
    type: enumOf(SSO_TYPES),
    name,
    domains,
    default_role: Type.Optional(defaultRole),
    issuer: Type.Optional(orNull(issuer)),
    client_id: Type.Optional(orNull(clientId)),
    client_secret: Type.Optional(orNull(clientSecret)),
    idp_metadata_xml: Type.Optional(orNull(metadataXml)),
    idp_metadata_url: Type.Optional(orNull(metadataUrl)),
    allow_idp_initiated: Type.Optional(orNull(allowIdpInitiated)),
  },
  { $id: 'CreateSsoConfiguration', title: 'CreateSsoConfiguration' },
);
export const UpdateSsoConfiguration = strictObject(
  {
    name: Type.Optional(name),
    domains: Type.Optional(domains),
    default_role: Type.Optional(defaultRole),
    issuer: Type.Optional(orNull(issuer)),
    client_id: Type.Optional(orNull(clientId)),
    client_secret: Type.Optional(orNull(clientSecret)),
    idp_metadata_xml: Type.Optional(orNull(metadataXml)),
    idp_metadata_url: Type.Optional(orNull(metadataUrl)),
    allow_idp_initiated: Type.Optional(orNull(allowIdpInitiated)),
    disabled: Type.Optional(
      Type.Literal(true, {
        description:
          'Stops logins through the active configuration, or linking through a replaced one. Not together with other fields.',
      }),
    ),
    pending_changes: Type.Optional(
      Type.Null({ description: 'Discards the pending changes. Not together with other fields.' }),
    ),
  },
  { $id: 'UpdateSsoConfiguration', title: 'UpdateSsoConfiguration', minProperties: 1 },
);

export const SsoPendingChanges = strictObject(
  {
    issuer: nullableText(2_048, { description: 'OIDC.' }),
    client_id: nullableText(500, { description: 'OIDC.' }),
    entity_id: nullableText(1_024, { description: 'SAML: of the identity provider.' }),
    idp_metadata_url: nullableText(2_048, { description: 'SAML.' }),
    certificate_expires_at: nullableTimestamp('SAML.'),
    tested_at: nullableTimestamp('When a test passed with these settings. They can be activated then.'),
    created_at: timestamp(),
  },
  {
    $id: 'SsoPendingChanges',
    title: 'SsoPendingChanges',
    description:
      'Settings of an active configuration that wait for a test, and take effect when it is activated.',
  },
);

export const SsoConfigurationRecord = resource(
  'sso_configuration',
  {
    id: id('Id of the configuration (sso_…).'),
    type: enumOf(SSO_TYPES),
    status: enumOf(SSO_STATUSES),
    name: text(100),
    issuer: nullableText(2_048, { description: 'OIDC.' }),
    client_id: nullableText(500, { description: 'OIDC.' }),
    entity_id: nullableText(1_024, { description: 'SAML: of the identity provider.' }),
    idp_metadata_url: nullableText(2_048, { description: 'SAML.' }),
    allow_idp_initiated: Type.Unsafe<boolean | null>({ type: ['boolean', 'null'], description: 'SAML.' }),
    certificate_expires_at: nullableTimestamp(
      'SAML: when the last certificate of the identity provider ends.',
    ),
    metadata_read_at: nullableTimestamp(
      'When metadata or keys were last read at its URL on demand, or daily.',
    ),
    domains: Type.Array(text(253), { maxItems: 50 }),
    default_role: enumOf(SSO_ROLES),
    pending_changes: Type.Unsafe<Static<typeof SsoPendingChanges> | null>({
      anyOf: [ref(SsoPendingChanges), { type: 'null' }],
    }),
    unlinked_members: Type.Unsafe<number | null>({
      type: ['integer', 'null'],
      minimum: 0,
      description:
        'Members who have not linked their account with the active configuration yet. Null unless that one has replaced this one, which then only links.',
    }),
    redirect_uri: nullableText(2_048, { description: 'OIDC: register it at the identity provider.' }),
    sp_entity_id: nullableText(2_048, {
      description: 'SAML: register it at the identity provider, as entity id and audience.',
    }),
    acs_url: nullableText(2_048, { description: 'SAML: where the identity provider posts its responses.' }),
    sp_metadata_url: nullableText(2_048, { description: 'SAML: metadata with both.' }),
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

export const SsoAttemptRecord = resource(
  'sso_attempt',
  {
    id: id('Id of the attempt (sat_…).'),
    purpose: enumOf(SSO_PURPOSES),
    succeeded: Type.Boolean(),
    checks,
    created_at: timestamp(),
  },
  { $id: 'SsoAttempt', title: 'SsoAttempt' },
);

export const SsoRedirect = resource(
  'redirect',
  {
    redirect_url: text(16_384, {
      description:
        'At the identity provider. Open it in the browser that received this response: its cookie is needed to finish.',
    }),
  },
  { $id: 'SsoRedirect', title: 'SsoRedirect' },
);
export const SsoTested = resource(
  'sso_test',
  { status: enumOf(['tested']), configuration_id: id('Id of the configuration (sso_…).'), checks },
  { $id: 'SsoTested', title: 'SsoTested' },
);
export const SsoConfirmation = resource(
  'sso_confirmation',
  {
    status: enumOf(['confirmation_required']),
    confirm_token: text(64, {
      description: 'For POST /auth/sso/saml/confirm, from the same browser, within ten minutes.',
    }),
    organization_name: text(255),
    email: text(254, { description: 'Address of the person.' }),
  },
  { $id: 'SsoConfirmation', title: 'SsoConfirmation' },
);
export const SsoConfirm = strictObject(
  { confirm_token: text(64, { minLength: 1 }) },
  { $id: 'SsoConfirm', title: 'SsoConfirm' },
);
export const SsoLink = strictObject(
  {
    link_token: text(64, {
      minLength: 1,
      description: 'From the error account_exists or sso_link_required.',
    }),
  },
  { $id: 'SsoLink', title: 'SsoLink' },
);
export const SsoFormerLink = strictObject(
  {
    link_token: text(64, {
      minLength: 1,
      description: 'From the error account_exists or sso_link_required.',
    }),
    configuration_id: id('The former_configuration_id of the error (sso_…).'),
  },
  { $id: 'SsoFormerLink', title: 'SsoFormerLink' },
);

/** What this service is to identity providers. */
export interface ServiceProviderUrls {
  redirectUri: string;
  entityId(serviceProviderId: string): string;
  acsUrl(serviceProviderId: string): string;
  metadataUrl(organizationId: string, configurationId: string): string;
}

export function presentSsoConfiguration(
  configuration: SsoConfigurationView,
  { redirectUri, entityId, acsUrl, metadataUrl }: ServiceProviderUrls,
): Static<typeof SsoConfigurationRecord> {
  const isOidc = configuration.type === 'oidc';
  const serviceProviderId = configuration.serviceProviderId ?? configuration.id;
  return {
    object: 'sso_configuration',
    id: configuration.id,
    type: configuration.type,
    status: configuration.status,
    name: configuration.name,
    ...presentIdentityProvider(configuration),
    allow_idp_initiated: isOidc ? null : configuration.allowIdpInitiated,
    metadata_read_at: latest(configuration.metadataFetchedAt, configuration.keysReadAt),
    domains: configuration.domains,
    default_role: configuration.defaultRole,
    pending_changes: configuration.pending && presentPending(configuration.pending),
    unlinked_members: configuration.unlinkedMembers,
    redirect_uri: isOidc ? redirectUri : null,
    sp_entity_id: isOidc ? null : entityId(serviceProviderId),
    acs_url: isOidc ? null : acsUrl(serviceProviderId),
    sp_metadata_url: isOidc ? null : metadataUrl(configuration.organizationId, configuration.id),
    created_at: configuration.createdAt.toISOString(),
    tested_at: configuration.testedAt?.toISOString() ?? null,
    activated_at: configuration.activatedAt?.toISOString() ?? null,
  };
}

const presentIdentityProvider = (settings: SsoConfigurationRow) => ({
  issuer: settings.type === 'oidc' ? settings.issuer : null,
  client_id: settings.clientId,
  entity_id: settings.type === 'oidc' ? null : settings.issuer,
  idp_metadata_url: settings.idpMetadataUrl,
  certificate_expires_at: settings.certificateExpiresAt?.toISOString() ?? null,
});

const presentPending = (pending: SsoConfigurationRow) => ({
  ...presentIdentityProvider(pending),
  tested_at: pending.testedAt?.toISOString() ?? null,
  created_at: pending.createdAt.toISOString(),
});

const latest = (one: Date | null, other: Date | null): string | null =>
  (one && other ? (one > other ? one : other) : (one ?? other))?.toISOString() ?? null;

export function presentSsoAttempt(attempt: SsoAttempt): Static<typeof SsoAttemptRecord> {
  return {
    object: 'sso_attempt',
    id: attempt.id,
    purpose: attempt.purpose,
    succeeded: attempt.succeeded,
    checks: attempt.checks,
    created_at: attempt.createdAt.toISOString(),
  };
}
