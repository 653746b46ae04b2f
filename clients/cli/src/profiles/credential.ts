import { credentialError, usageError } from '../cli-error.ts';
import { DEFAULT_BASE_URL, readBaseUrl } from './address.ts';
import { requestTokens } from './oauth.ts';
import {
  createProfileFile,
  type Profile,
  type ProfileFile,
  requireName,
  type SignIn,
} from './profile-file.ts';

export const DEFAULT_PROFILE = 'default';
/** A token that ends sooner is renewed first. */
const RENEW_MS = 60_000;

/** What a command may present to one service, and to no other. */
export interface Credential {
  kind: 'key' | 'sign_in';
  baseUrl: string;
  /** Null: from the environment. */
  profile: string | null;
  /** The value of `Authorization: Bearer`. */
  token(): Promise<string>;
  /** Another token after the service has refused one; undefined if there is none. */
  renew(refused: string): Promise<string | undefined>;
}

/**
 * Finds the credential of a command: of the profile that it names, else of `AGENT_EMAIL_API_KEY`, else of the profile
 * `default`.
 *
 * @throws CliError without one, or if the environment names another address than that of the profile's credential.
 */
export async function findCredential(
  env: NodeJS.ProcessEnv,
  { profile }: { profile?: string | undefined },
): Promise<Credential> {
  const { AGENT_EMAIL_API_KEY: key, AGENT_EMAIL_BASE_URL: address } = env;
  if (profile === undefined && key)
    return keyCredential(readKey(key), readBaseUrl(address || DEFAULT_BASE_URL), null);
  const name = profile ?? DEFAULT_PROFILE;
  requireName(name);
  const file = createProfileFile(env);
  const found = await file.find(name);
  if (!found)
    throw credentialError(
      profile === undefined ? 'You are not logged in.' : `There is no profile ${name}.`,
      `Run agent-email login${profile === undefined ? '' : ` --profile ${name}`}, or set AGENT_EMAIL_API_KEY.`,
    );
  const baseUrl = readBaseUrl(found.base_url);
  if (address && readBaseUrl(address) !== baseUrl)
    throw usageError(
      `AGENT_EMAIL_BASE_URL is not the address of the profile ${name}, and its credential goes nowhere else.`,
      'Unset AGENT_EMAIL_BASE_URL, or set AGENT_EMAIL_API_KEY too.',
    );
  return found.api_key === undefined
    ? signInCredential(file, name, found, baseUrl)
    : keyCredential(found.api_key, baseUrl, name);
}

/** @throws CliError for what cannot be a key, without repeating it. */
export function readKey(text: string): string {
  const key = text.trim();
  if (/^[\x21-\x7e]{1,512}$/.test(key)) return key;
  throw credentialError('That is no API key.', 'Give one key (ask_…), and nothing else.', 'invalid_key');
}

const keyCredential = (key: string, baseUrl: string, profile: string | null): Credential => ({
  kind: 'key',
  baseUrl,
  profile,
  token: async () => key,
  renew: async () => undefined,
});

function signInCredential(file: ProfileFile, name: string, found: Profile, baseUrl: string): Credential {
  let present = found.sign_in;

  /** One command renews. The others wait for the lock, and then find the new token. */
  async function renew(isOld: (signIn: SignIn) => boolean): Promise<SignIn> {
    const changed = await file.change(name, async (profile) => {
      if (!profile?.sign_in || readBaseUrl(profile.base_url) !== baseUrl)
        throw credentialError('You were logged out.', 'Run agent-email login.');
      if (!isOld(profile.sign_in)) return profile;
      const { refresh_token } = profile.sign_in;
      const sign_in = await requestTokens(baseUrl, { grant_type: 'refresh_token', refresh_token });
      return { ...profile, sign_in };
    });
    if (!changed?.sign_in) throw new Error('A sign-in was lost');
    present = changed.sign_in;
    return present;
  }

  return {
    kind: 'sign_in',
    baseUrl,
    profile: name,
    async token() {
      if (!present) throw new Error('A profile without key has a sign-in');
      return endsSoon(present) ? (await renew(endsSoon)).access_token : present.access_token;
    },
    renew: async (refused) => (await renew(({ access_token }) => access_token === refused)).access_token,
  };
}

const endsSoon = ({ expires_at }: SignIn): boolean => !(Date.parse(expires_at) - Date.now() > RENEW_MS);
