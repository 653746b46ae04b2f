import { credentialError, interrupted } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { signIn } from '../login/sign-in.ts';
import { DEFAULT_BASE_URL, readBaseUrl } from '../profiles/address.ts';
import { DEFAULT_PROFILE, readKey } from '../profiles/credential.ts';
import { revoke } from '../profiles/oauth.ts';
import { createProfileFile, type Profile, requireName } from '../profiles/profile-file.ts';
import type { Credential as Caller } from '../sdk.ts';
import { openSession, sessionOf } from '../session.ts';
import { formatFields } from '../terminal/table.ts';
import { readAll } from './read-input.ts';

export interface LoginOptions {
  baseUrl?: string;
  /** From standard input. */
  withKey?: true;
  browser: boolean;
}

/** Signs in, or takes a key, and keeps the credential under the profile once the service has accepted it. */
export async function login(context: Context, options: LoginOptions): Promise<void> {
  const { env, globals, output } = context;
  const name = globals.profile ?? DEFAULT_PROFILE;
  requireName(name);
  const file = createProfileFile(env);
  const former = await file.find(name);
  const baseUrl = readBaseUrl(
    options.baseUrl ?? (env.AGENT_EMAIL_BASE_URL || former?.base_url || DEFAULT_BASE_URL),
  );
  const profile: Profile = options.withKey
    ? { base_url: baseUrl, api_key: await askForKey(context) }
    : { base_url: baseUrl, sign_in: await signInHere(context, baseUrl, options.browser) };
  const token = profile.api_key ?? profile.sign_in?.access_token ?? '';
  const { client } = await sessionOf({
    kind: profile.api_key === undefined ? 'sign_in' : 'key',
    baseUrl,
    profile: name,
    token: async () => token,
    renew: async () => undefined,
  });
  const caller = await client.me.get();
  await file.change(name, async () => profile);
  if (former?.sign_in)
    await revoke(readBaseUrl(former.base_url), former.sign_in.refresh_token).catch(() => false);
  if (env.AGENT_EMAIL_API_KEY && globals.profile === undefined)
    output.note('AGENT_EMAIL_API_KEY is set: commands without --profile use it, and not this login.');
  output.answer({ profile: name, base_url: baseUrl, ...caller }, () => [
    `You are logged in${name === DEFAULT_PROFILE ? '' : ` as the profile ${name}`}.`,
    ...linesOf(caller, { profile: name, baseUrl }),
  ]);
}

const signInHere = ({ stdout, output }: Context, baseUrl: string, opensBrowser: boolean) =>
  signIn({
    baseUrl,
    opensBrowser: opensBrowser && stdout.isTTY === true,
    show: (url) => output.note(`Allow the command line in your browser: ${url}`),
  });

/** From a pipe, or typed on a terminal that does not show it. */
async function askForKey({ stdin, stderr }: Context): Promise<string> {
  if (!stdin.isTTY) return readKey(await readAll(stdin));
  stderr.write('API key: ');
  stdin.setRawMode?.(true);
  try {
    return readKey(await typeLine(stdin));
  } finally {
    stdin.setRawMode?.(false);
    stderr.write('\n');
  }
}

/** Without echo the terminal edits nothing: what it sends is each key. */
async function typeLine(stdin: Context['stdin']): Promise<string> {
  let line = '';
  for await (const chunk of stdin)
    for (const key of String(chunk)) {
      if (key === '\r' || key === '\n' || key === '\u0004') return line;
      if (key === '\u0003') throw interrupted();
      line = key === '\u007f' || key === '\b' ? line.slice(0, -1) : line + key;
    }
  return line;
}

/** Forgets the profile, and ends a sign-in at the service. */
export async function logout({ env, globals, output }: Context): Promise<void> {
  const name = globals.profile ?? DEFAULT_PROFILE;
  const file = createProfileFile(env);
  const profile = await file.find(name);
  if (!profile) throw credentialError(`There is no profile ${name}.`, 'Nothing has to be done.');
  await file.change(name, async () => null);
  const ended = profile.sign_in
    ? await revoke(readBaseUrl(profile.base_url), profile.sign_in.refresh_token).catch(() => false)
    : false;
  const notes = profile.sign_in
    ? ended
      ? []
      : ['The service was not reached. End the connection on the page of your organization.']
    : ['The key still works elsewhere. Revoke it if nothing needs it.'];
  output.answer({ profile: name, ended }, () => [`Logged out of ${name}.`, ...notes]);
}

export async function whoami(context: Context): Promise<void> {
  const { client, credential } = await openSession(context);
  const caller = await client.me.get();
  const { profile, baseUrl } = credential;
  context.output.answer({ profile, base_url: baseUrl, ...caller }, () => linesOf(caller, credential));
}

function linesOf(
  caller: Caller,
  { profile, baseUrl }: { profile: string | null; baseUrl: string },
): string[] {
  const today = caller.sends?.today.remaining;
  return formatFields([
    ['Address', baseUrl],
    ['Profile', profile ?? 'none: AGENT_EMAIL_API_KEY'],
    ['Credential', `${caller.id} (${caller.kind})`],
    ['Organization', caller.org_id],
    ['Environment', caller.env_id && `${caller.env_id}${caller.is_sandbox ? ' (sandbox)' : ''}`],
    ['Inbox', caller.inbox_id ?? (caller.binding === 'inbox' ? '' : 'all')],
    ['Permissions', caller.permissions.join(', ')],
    ['Suspended', caller.suspended],
    ['Expires', caller.expires_at],
    ['Sends left today', today],
  ]);
}
