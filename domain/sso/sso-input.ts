import type { SecretBox } from '../../platform/crypto.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { isWithinDomain, parseDomainName } from '../mime/domain-name.ts';
import type { SsoConfiguration, SsoRole, SsoType } from './sso-configuration.entity.ts';
import { clientSecretContext } from './sso-settings.ts';

/** Settings that can be changed. Omitted ones stay. */
export interface SsoChange {
  name?: string;
  domains?: string[];
  defaultRole?: SsoRole;
  issuer?: string;
  clientId?: string;
  clientSecret?: string;
}

export interface NewSsoConfiguration extends SsoChange {
  type: SsoType;
  name: string;
  domains: string[];
}

export interface SsoInputOptions {
  /** Why the egress guard would refuse a URL; null if it would not. */
  findTargetRefusal(url: string): string | null;
  /** Domains of the service itself, in which every tenant can receive mail. */
  ownDomains: readonly string[];
}

/** Fields as they are stored. */
export type SsoFields = Partial<
  Pick<SsoConfiguration, 'name' | 'domains' | 'defaultRole' | 'issuer' | 'clientId'> & {
    clientSecret: string;
  }
>;

const OIDC_FIELDS = ['issuer', 'clientId', 'clientSecret'] as const;
const NAMES: Record<string, string> = { clientId: 'client_id', clientSecret: 'client_secret' };

/**
 * Checks settings before they are stored. Requires all fields of the type for a new configuration.
 *
 * @throws AppError `validation_error`
 */
export async function checkInput(
  { findTargetRefusal, ownDomains }: SsoInputOptions,
  input: SsoChange & { type: SsoType },
  isNew = 'name' in input && 'domains' in input,
): Promise<SsoFields> {
  const { type, domains, ...fields } = input;
  if (type === 'oidc' && isNew)
    for (const field of OIDC_FIELDS) if (input[field] === undefined) throw missing(field);
  if (input.issuer !== undefined) requireIssuer(input.issuer, findTargetRefusal);
  return {
    ...fields,
    ...(domains === undefined ? {} : { domains: parseDomains(domains, ownDomains) }),
  };
}

/** Writes checked settings into a configuration. */
export function applyChange(
  configuration: SsoConfiguration,
  { clientSecret, ...fields }: SsoFields,
  secretBox: SecretBox,
): void {
  Object.assign(configuration, fields);
  if (clientSecret !== undefined)
    configuration.clientSecret = secretBox.seal(clientSecret, clientSecretContext(configuration.id));
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
      'Use the issuer, not another URL of it.',
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

function missing(field: string): AppError {
  const name = NAMES[field] ?? field;
  return invalid(`/body/${name}`, 'is required for this type', `Send ${name}.`);
}
