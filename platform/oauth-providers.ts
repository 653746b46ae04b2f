import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import type { Config } from './config.ts';

interface Provider {
  /** In paths: `/auth/oauth/{id}`. */
  id: string;
  /** On buttons. */
  name: string;
  clientId: string;
  clientSecret: string;
}

/** How far a statement of the provider proves that an address is the person's. */
export type EmailTrust =
  /** The operator knows that the provider verifies addresses. */
  | 'verified'
  /** Only for addresses that Google itself manages: others may have changed hands since Google verified them. */
  | 'google'
  | 'never';

/** An OpenID Connect provider. */
export interface OidcProvider extends Provider {
  kind: 'oidc';
  issuer: string;
  emailTrust: EmailTrust;
}

/** GitHub or a GitHub Enterprise Server, which have OAuth 2.0 without OpenID Connect. */
export interface GithubProvider extends Provider {
  kind: 'github';
  url: string;
  apiUrl: string;
}

/** An identity provider that people may sign in with, chosen by the operator. */
export type OauthProvider = OidcProvider | GithubProvider;

const OidcList = Type.Array(
  Type.Object(
    {
      id: Type.String({ pattern: '^[a-z0-9-]{1,40}$' }),
      name: Type.String({ minLength: 1, maxLength: 50 }),
      issuer: Type.String({ pattern: '^https?://' }),
      client_id: Type.String({ minLength: 1 }),
      client_secret: Type.String({ minLength: 1 }),
      verifies_email: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  ),
  { maxItems: 20 },
);

/** @throws Error that names the setting, without its value. */
export function readOauthProviders(config: Config): OauthProvider[] {
  const providers = [...readGoogle(config), ...readGithub(config), ...readOidc(config)];
  const ids = providers.map(({ id }) => id);
  if (new Set(ids).size < ids.length)
    throw new Error(`OAUTH_OIDC_PROVIDERS: each id must be unique, and neither google nor github`);
  return providers;
}

function readGoogle(config: Config): OidcProvider[] {
  const credentials = readCredentials(
    'OAUTH_GOOGLE',
    config.OAUTH_GOOGLE_CLIENT_ID,
    config.OAUTH_GOOGLE_CLIENT_SECRET,
  );
  const issuer = 'https://accounts.google.com';
  return credentials
    ? [{ kind: 'oidc', id: 'google', name: 'Google', issuer, emailTrust: 'google', ...credentials }]
    : [];
}

function readGithub(config: Config): GithubProvider[] {
  const credentials = readCredentials(
    'OAUTH_GITHUB',
    config.OAUTH_GITHUB_CLIENT_ID,
    config.OAUTH_GITHUB_CLIENT_SECRET,
  );
  if (!credentials) return [];
  const [url, apiUrl] = [config.OAUTH_GITHUB_URL, config.OAUTH_GITHUB_API_URL].map((setting) =>
    setting.replace(/\/+$/, ''),
  ) as [string, string];
  requireTls('OAUTH_GITHUB_URL', url, config);
  requireTls('OAUTH_GITHUB_API_URL', apiUrl, config);
  return [{ kind: 'github', id: 'github', name: 'GitHub', url, apiUrl, ...credentials }];
}

function readOidc(config: Config): OidcProvider[] {
  if (config.OAUTH_OIDC_PROVIDERS === undefined) return [];
  return parseList(config.OAUTH_OIDC_PROVIDERS).map(({ id, name, issuer, ...rest }) => {
    requireTls('OAUTH_OIDC_PROVIDERS', issuer, config);
    return {
      kind: 'oidc',
      id,
      name,
      issuer,
      clientId: rest.client_id,
      clientSecret: rest.client_secret,
      emailTrust: rest.verifies_email ? 'verified' : 'never',
    };
  });
}

function parseList(json: string): Static<typeof OidcList> {
  let list: unknown;
  try {
    list = JSON.parse(json);
  } catch {
    throw new Error('OAUTH_OIDC_PROVIDERS is not JSON');
  }
  const [error] = Value.Errors(OidcList, list);
  if (error) throw new Error(`OAUTH_OIDC_PROVIDERS${error.instancePath} ${error.message}`);
  return list as Static<typeof OidcList>;
}

function readCredentials(
  prefix: string,
  clientId: string | undefined,
  clientSecret: string | undefined,
): { clientId: string; clientSecret: string } | undefined {
  if (clientId !== undefined && clientSecret !== undefined) return { clientId, clientSecret };
  if (clientId === undefined && clientSecret === undefined) return undefined;
  throw new Error(`${prefix}_CLIENT_ID and ${prefix}_CLIENT_SECRET belong together: set both or neither`);
}

/** Codes and client secrets are sent there. */
function requireTls(setting: string, url: string, { NODE_ENV }: Pick<Config, 'NODE_ENV'>): void {
  if (NODE_ENV === 'production' && !url.startsWith('https://'))
    throw new Error(`${setting}: ${url} must begin with https://`);
}
