import { errors } from 'oidc-provider';

/** What a client may say about itself (RFC 7591 section 2). Everything else is left out. */
export interface ClientMetadata {
  client_name?: string;
  client_uri?: string;
  redirect_uris: string[];
  application_type: 'native' | 'web';
  grant_types: string[];
  response_types: string[];
  response_modes: string[];
  token_endpoint_auth_method: 'none';
}

const MAX_REDIRECT_URIS = 20;
const MAX_URI_CHARACTERS = 1_000;
const MAX_NAME_CHARACTERS = 80;
const LOOPBACK_HOSTS = ['localhost', '127.0.0.1', '[::1]'];

/** Schemes of MCP hosts that are installed on the person's computer. Any program may claim any scheme. */
const PRIVATE_SCHEMES = [
  'claude:',
  'cursor:',
  'goose:',
  'kiro:',
  'raycast:',
  'vscode:',
  'vscode-insiders:',
  'vscodium:',
  'warp:',
  'windsurf:',
  'zed:',
];

/**
 * Reads what a client says about itself, in its registration or its metadata document. Clients are public and prove
 * themselves by PKCE, so that the service keeps no secret of theirs; what they ask for beyond that is replaced, as RFC 7591
 * section 3.2.1 allows.
 *
 * @throws ProviderError `invalid_redirect_uri` or `invalid_client_metadata`.
 */
export function readClientMetadata(input: Record<string, unknown>): ClientMetadata {
  const redirectUris = readRedirectUris(input.redirect_uris);
  const clientUri = readWebUri(input.client_uri);
  const name = readName(input.client_name);
  return {
    ...(name === '' ? {} : { client_name: name }),
    ...(clientUri === undefined ? {} : { client_uri: clientUri }),
    redirect_uris: redirectUris,
    // Only native clients may use another port of a loopback address than the one they registered (RFC 8252 section 7.3).
    application_type: redirectUris.every((uri) => uri.startsWith('https:')) ? 'web' : 'native',
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
    response_modes: ['query'],
    token_endpoint_auth_method: 'none',
  };
}

function readRedirectUris(value: unknown): string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_REDIRECT_URIS)
    throw refused(`redirect_uris must have 1 to ${MAX_REDIRECT_URIS} members`);
  const uris = value.filter(isPlainUri);
  if (uris.length < value.length || !uris.every(isAllowedRedirect))
    throw refused(
      `redirect_uris must be https, http on a loopback address, or one of the schemes ${PRIVATE_SCHEMES.join(' ')} without user, fragment or more than ${MAX_URI_CHARACTERS} characters`,
    );
  return [...new Set(uris)];
}

const isPlainUri = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= MAX_URI_CHARACTERS && /^[\x21-\x7e]+$/.test(value);

function isAllowedRedirect(uri: string): boolean {
  const url = URL.parse(uri);
  if (url?.username !== '' || url.password !== '' || uri.includes('#')) return false;
  if (PRIVATE_SCHEMES.includes(url.protocol)) return true;
  const isLoopback = LOOPBACK_HOSTS.includes(url.hostname);
  return url.protocol === 'http:' ? isLoopback : url.protocol === 'https:' && !isLoopback;
}

/** Left out if it is not a plain address of the web: it is only shown. */
function readWebUri(value: unknown): string | undefined {
  if (!isPlainUri(value)) return undefined;
  const url = URL.parse(value);
  return url?.protocol === 'https:' && url.username === '' ? url.href : undefined;
}

/** Strangers choose the name, and people read it when they decide: no character that hides or reorders text. */
function readName(value: unknown): string {
  if (typeof value !== 'string') return '';
  const plain = value
    .normalize('NFC')
    .replace(/[\p{Cf}\p{Cs}\p{Co}\p{Cn}]/gu, '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  return [...plain].slice(0, MAX_NAME_CHARACTERS).join('');
}

const refused = (description: string) => new errors.InvalidClientMetadata(description);
