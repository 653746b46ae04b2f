import { randomUUID } from 'node:crypto';
import { chmod, mkdir, open, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { dirname, isAbsolute, join } from 'node:path';
import { CliError, credentialError, EXIT, usageError } from '../cli-error.ts';
import { withLock } from './lock.ts';

/** What a person's sign-in gave. */
export interface SignIn {
  access_token: string;
  refresh_token: string;
  /** When the access token ends (ISO 8601). */
  expires_at: string;
}

/** A service and a credential for it: either a key or a sign-in. */
export interface Profile {
  base_url: string;
  api_key?: string;
  sign_in?: SignIn;
}

type Profiles = Record<string, Profile>;

const MAX_FILE_BYTES = 1024 * 1024;
const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/i;

export type ProfileFile = ReturnType<typeof createProfileFile>;

/** The file with the credentials of this user, which no other user may read. */
export function createProfileFile(env: NodeJS.ProcessEnv) {
  const path = join(configFolder(env), 'profiles.json');
  const lockPath = join(configFolder(env), 'profiles.lock');

  async function read(): Promise<Profiles> {
    const file = await open(path, 'r').catch(ignoreMissing);
    if (!file) return {};
    try {
      const { mode, uid, size } = await file.stat();
      requirePrivate(path, { mode, uid });
      if (size > MAX_FILE_BYTES) throw broken(path);
      return parse(path, await file.readFile('utf8'));
    } finally {
      await file.close();
    }
  }

  return {
    path,
    /** @throws CliError if others can read the file, or it is not what this program wrote. */
    async find(name: string): Promise<Profile | undefined> {
      const profiles = await read();
      return Object.hasOwn(profiles, name) ? profiles[name] : undefined;
    },
    names: async (): Promise<string[]> => Object.keys(await read()),
    /**
     * Changes a profile while no other command does. The function gets the present one; null deletes it.
     *
     * @returns the profile afterwards.
     */
    async change(
      name: string,
      decide: (present: Profile | undefined) => Promise<Profile | null>,
    ): Promise<Profile | null> {
      requireName(name);
      await mkdir(dirname(path), { recursive: true, mode: 0o700 });
      await chmod(dirname(path), 0o700);
      return withLock(lockPath, async () => {
        const profiles = await read();
        const present = Object.hasOwn(profiles, name) ? profiles[name] : undefined;
        const decided = await decide(present);
        if (decided === present) return decided;
        const { [name]: _, ...others } = profiles;
        await write(path, decided === null ? others : { ...others, [name]: decided });
        return decided;
      });
    },
  };
}

export function requireName(name: string): void {
  if (!NAME.test(name))
    throw usageError(
      'The name of a profile has up to 64 letters, digits, dots, hyphens and underscores.',
      'Choose another name.',
    );
}

function configFolder({ XDG_CONFIG_HOME, APPDATA, HOME }: NodeJS.ProcessEnv): string {
  // Relative paths are invalid, says the XDG specification.
  if (XDG_CONFIG_HOME && isAbsolute(XDG_CONFIG_HOME)) return join(XDG_CONFIG_HOME, 'agent-email');
  if (process.platform === 'win32' && APPDATA) return join(APPDATA, 'agent-email');
  return join(HOME || homedir(), '.config', 'agent-email');
}

function requirePrivate(path: string, { mode, uid }: { mode: number; uid: number }): void {
  if (process.platform === 'win32') return;
  if ((mode & 0o077) !== 0)
    throw credentialError(
      `Other users of this computer can reach ${path}, which has credentials.`,
      `Run: chmod 600 ${path}. If others may have read it, log out and make a new key.`,
      'profile_not_private',
    );
  if (uid !== process.getuid?.())
    throw credentialError(
      `${path} belongs to another user.`,
      'Remove it, and log in again.',
      'profile_not_private',
    );
}

function parse(path: string, text: string): Profiles {
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw broken(path);
  }
  const { profiles } = (content ?? {}) as { profiles?: unknown };
  if (typeof profiles !== 'object' || profiles === null || !Object.values(profiles).every(isProfile))
    throw broken(path);
  return profiles as Profiles;
}

function isProfile(value: unknown): boolean {
  const { base_url, api_key, sign_in } = (value ?? {}) as Record<string, unknown>;
  if (typeof base_url !== 'string') return false;
  if (typeof api_key === 'string') return true;
  const { access_token, refresh_token, expires_at } = (sign_in ?? {}) as Record<string, unknown>;
  return [access_token, refresh_token, expires_at].every((text) => typeof text === 'string');
}

const broken = (path: string) =>
  new CliError(`${path} is not a file of profiles.`, {
    exitCode: EXIT.credential,
    code: 'profile_file_invalid',
    fix: 'Repair or remove it, and log in again.',
  });

/** Either the old file or the new one is there, also after a crash. */
async function write(path: string, profiles: Profiles): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify({ version: 1, profiles }, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined;
  throw error;
}
