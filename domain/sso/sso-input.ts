import type { SecretBox } from '../../platform/crypto.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { isWithinDomain, parseDomainName } from '../mime/domain-name.ts';
import type { ConfigurationChange, StoredConfiguration } from './change-configuration.ts';
import type { MetadataSource } from './metadata-source.ts';
import { type IdpMetadata, MetadataRefusal } from './saml/idp-metadata.ts';
import type { SsoRole, SsoType } from './sso-configuration.entity.ts';
import { clientSecretContext } from './sso-settings.ts';

/** Settings that can be changed. Omitted ones stay. */
export interface SsoChange {
  name?: string;
  domains?: string[];
  defaultRole?: SsoRole;
  issuer?: string;
  clientId?: string;
  clientSecret?: string;
  idpMetadataXml?: string;
  idpMetadataUrl?: string;
  allowIdpInitiated?: boolean;
}

export interface NewSsoConfiguration extends SsoChange {
  type: SsoType;
  name: string;
  domains: string[];
}

export interface SsoInputOptions {
  /** Why the egress guard would refuse a URL; null if it would allow it. */
  findTargetRefusal(url: string): string | null;
  /** Domains of the service itself, in which every tenant can receive mail. */
  ownDomains: readonly string[];
  metadataSource: MetadataSource;
  /** @throws MetadataRefusal */
  parseMetadata(xml: string): IdpMetadata;
}

/** Fields as stored. */
export type SsoFields = Omit<ConfigurationChange, 'clientSecret'> & { clientSecret?: string };

/** Settings that take effect only after a test. */
const TESTED_FIELDS = [
  'issuer',
  'clientId',
  'clientSecret',
  'idpMetadataUrl',
  'idpMetadataXml',
  'metadataFetchedAt',
  'metadataDueAt',
  'certificateExpiresAt',
  'certificateWarnedDays',
] as const;

const NAMES = {
  issuer: 'issuer',
  clientId: 'client_id',
  clientSecret: 'client_secret',
  idpMetadataXml: 'idp_metadata_xml',
  idpMetadataUrl: 'idp_metadata_url',
  allowIdpInitiated: 'allow_idp_initiated',
} as const;
const FIELDS_OF_TYPE: Record<SsoType, readonly (keyof typeof NAMES)[]> = {
  oidc: ['issuer', 'clientId', 'clientSecret'],
  saml: ['idpMetadataXml', 'idpMetadataUrl', 'allowIdpInitiated'],
};
/** How often metadata is read from its URL. */
export const METADATA_INTERVAL_MS = 86_400_000;

/**
 * Checks settings before they are stored, and reads the metadata of a SAML identity provider.
 *
 * @param isNew requires all settings of the type.
 * @throws AppError `validation_error`
 */
export async function checkInput(
  options: SsoInputOptions,
  { type, domains, idpMetadataXml, idpMetadataUrl, ...fields }: SsoChange & { type: SsoType },
  { isNew }: { isNew: boolean },
): Promise<SsoFields> {
  const given = { idpMetadataXml, idpMetadataUrl, ...fields };
  requireFieldsOfType(type, given, isNew);
  if (given.issuer !== undefined) requireIssuer(given.issuer, options.findTargetRefusal);
  return {
    ...fields,
    ...(domains === undefined ? {} : { domains: parseDomains(domains, options.ownDomains) }),
    ...(await readMetadata(options, idpMetadataXml, idpMetadataUrl)),
  };
}

/** Seals the client secret of checked settings, as the configuration stores it. */
export function sealSecret(
  { clientSecret, ...fields }: SsoFields,
  configurationId: string,
  secretBox: SecretBox,
): ConfigurationChange {
  return clientSecret === undefined
    ? fields
    : { ...fields, clientSecret: secretBox.seal(clientSecret, clientSecretContext(configurationId)) };
}

/**
 * Splits changed settings into those that need a test and the others. Leaves out unchanged values, so that a form can send
 * all of them. Metadata with an unchanged URL counts as unchanged: another operation reads the URL again.
 */
export function splitFields(
  fields: SsoFields,
  before: StoredConfiguration,
): { tested: SsoFields; others: Omit<SsoFields, 'clientSecret'> } {
  const { idpMetadataUrl: url, idpMetadataXml: xml } = fields;
  const isSameMetadata =
    url === before.idpMetadataUrl && (typeof url === 'string' || xml === before.idpMetadataXml);
  const entries = Object.entries(fields);
  const isTested = (name: string) => (TESTED_FIELDS as readonly string[]).includes(name);
  const hasChanged = (name: string, value: unknown) =>
    before.type === 'saml'
      ? !isSameMetadata
      : name === 'clientSecret' || value !== before[name as keyof StoredConfiguration];
  return {
    tested: Object.fromEntries(entries.filter(([name, value]) => isTested(name) && hasChanged(name, value))),
    others: Object.fromEntries(entries.filter(([name]) => !isTested(name))),
  };
}

/** What a configuration stores of its identity provider's metadata. */
function metadataFields(xml: string, { entityId, certificateExpiresAt }: IdpMetadata) {
  return { idpMetadataXml: xml, issuer: entityId, certificateExpiresAt, certificateWarnedDays: null };
}

function requireFieldsOfType(type: SsoType, given: SsoChange, isNew: boolean): void {
  const own = FIELDS_OF_TYPE[type];
  for (const [field, name] of Object.entries(NAMES) as [keyof typeof NAMES, string][])
    if (given[field] !== undefined && !own.includes(field))
      throw invalid(`/body/${name}`, `does not belong to the type ${type}`, `Leave ${name} out.`);
  if (type === 'saml') {
    const count = [given.idpMetadataXml, given.idpMetadataUrl].filter((value) => value !== undefined).length;
    if (count > 1 || (isNew && count === 0))
      throw missing('idp_metadata_xml', 'or idp_metadata_url, but not both,');
    return;
  }
  if (isNew) for (const field of own) if (given[field] === undefined) throw missing(NAMES[field]);
}

async function readMetadata(
  { metadataSource, findTargetRefusal, parseMetadata }: SsoInputOptions,
  xml: string | undefined,
  url: string | undefined,
): Promise<SsoFields> {
  if (xml === undefined && url === undefined) return {};
  const path = url === undefined ? '/body/idp_metadata_xml' : '/body/idp_metadata_url';
  const refuse = (problem: string) =>
    invalid(path, problem, 'Use the metadata that the identity provider publishes.');
  const refusal = url === undefined ? null : findTargetRefusal(url);
  if (refusal !== null) throw refuse(refusal);
  let text: string;
  try {
    text = xml ?? (await metadataSource.read(url ?? ''));
  } catch (error) {
    throw refuse(`cannot be read: ${error instanceof Error ? error.message : 'unknown'}`);
  }
  const now = new Date();
  try {
    return {
      ...metadataFields(text, parseMetadata(text)),
      idpMetadataUrl: url ?? null,
      metadataFetchedAt: url === undefined ? null : now,
      metadataDueAt: url === undefined ? null : new Date(now.getTime() + METADATA_INTERVAL_MS),
    };
  } catch (error) {
    if (error instanceof MetadataRefusal) throw refuse(error.message);
    throw error;
  }
}

function requireIssuer(issuer: string, findTargetRefusal: (url: string) => string | null): void {
  const refusal = findTargetRefusal(issuer);
  if (refusal !== null)
    throw invalid(
      '/body/issuer',
      refusal,
      'Use the https URL that the identity provider states as its issuer.',
    );
  const { search, hash } = new URL(issuer);
  if (search !== '' || hash !== '')
    throw invalid(
      '/body/issuer',
      'must have no query and no fragment',
      'Use the issuer URL, not another URL of the identity provider.',
    );
}

function parseDomains(domains: readonly string[], ownDomains: readonly string[]): string[] {
  const names = domains.map((domain, index) => {
    const path = `/body/domains/${index}`;
    const parsed = parseDomainName(domain);
    if ('problem' in parsed)
      throw invalid(path, 'is not a domain that can be registered', 'Use a domain such as example.com.');
    if (ownDomains.some((own) => isWithinDomain(parsed.name, own)))
      throw invalid(path, 'belongs to the service itself', 'Use a domain of your organization.');
    return parsed.name;
  });
  return [...new Set(names)];
}

function missing(name: string, alternative = ''): AppError {
  return invalid(`/body/${name}`, `${alternative} is required for this type`.trim(), `Send ${name}.`);
}
