import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { CliError } from '../../clients/cli/src/cli-error.ts';
import { readBaseUrl } from '../../clients/cli/src/profiles/address.ts';
import { findCredential } from '../../clients/cli/src/profiles/credential.ts';
import { withLock } from '../../clients/cli/src/profiles/lock.ts';
import { createProfileFile } from '../../clients/cli/src/profiles/profile-file.ts';

let folder: string;
let env: NodeJS.ProcessEnv;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'agent-email-cli-'));
  env = { XDG_CONFIG_HOME: folder };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const KEY = { base_url: 'https://mail.example.com', api_key: 'ask_live_1' };
const failureOf = (work: Promise<unknown>): Promise<CliError> =>
  work.then(
    () => Promise.reject(new Error('It did not fail')),
    (error: CliError) => error,
  );

describe('the file of profiles', () => {
  test('belongs to its user alone, in a folder that does too', async () => {
    const file = createProfileFile(env);
    await file.change('default', async () => KEY);
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(statSync(join(folder, 'agent-email')).mode & 0o777).toBe(0o700);
    expect(await file.find('default')).toEqual(KEY);
  });

  test('keeps its mode through a change, and leaves nothing else behind', async () => {
    const file = createProfileFile(env);
    await file.change('default', async () => KEY);
    await file.change('other', async () => KEY);
    await file.change('default', async () => null);
    expect(statSync(file.path).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file.path, 'utf8'))).toEqual({ version: 1, profiles: { other: KEY } });
    const { stdout } = await promisify(execFile)('ls', ['-A', join(folder, 'agent-email')]);
    expect(stdout).toBe('profiles.json\n');
  });

  test.each([0o640, 0o604, 0o620, 0o666])('that others can reach (%o) is refused', async (mode) => {
    const file = createProfileFile(env);
    await file.change('default', async () => KEY);
    chmodSync(file.path, mode);
    const error = await failureOf(findCredential(env, {}));
    expect(error).toMatchObject({ exitCode: 3, code: 'profile_not_private' });
    expect(error.fix).toContain('chmod 600');
  });

  test.each(['', '{', '[]', '{"profiles":{"default":{}}}', '{"profiles":{"default":{"base_url":1}}}'])(
    'that was damaged (%j) is refused, and not overwritten',
    async (content) => {
      const file = createProfileFile(env);
      await file.change('default', async () => KEY);
      writeFileSync(file.path, content);
      expect(await failureOf(file.find('default'))).toMatchObject({ code: 'profile_file_invalid' });
      await failureOf(file.change('default', async () => KEY));
      expect(readFileSync(file.path, 'utf8')).toBe(content);
    },
  );

  test.each(['../x', '__proto__', '', 'a b', 'a'.repeat(65)])('has no profile called %j', async (name) => {
    expect(await failureOf(findCredential(env, { profile: name }))).toMatchObject({ exitCode: 2 });
  });

  test.each(['constructor', 'toString', 'hasOwnProperty'])(
    'knows no profile %s that was not made',
    async (name) => {
      expect(await failureOf(findCredential(env, { profile: name }))).toMatchObject({ exitCode: 3 });
    },
  );
});

describe('the credential of a command', () => {
  test('is the key of the environment, unless the command names a profile', async () => {
    await createProfileFile(env).change('work', async () => KEY);
    const given = { ...env, AGENT_EMAIL_API_KEY: 'ask_live_2' };
    const own = await findCredential(given, {});
    expect([own.baseUrl, await own.token(), own.profile]).toEqual([
      'http://localhost:3000',
      'ask_live_2',
      null,
    ]);
    const named = await findCredential(given, { profile: 'work' });
    expect([named.baseUrl, await named.token()]).toEqual(['https://mail.example.com', 'ask_live_1']);
  });

  test('never goes to another address that the environment names', async () => {
    await createProfileFile(env).change('default', async () => KEY);
    const elsewhere = { ...env, AGENT_EMAIL_BASE_URL: 'https://attacker.example' };
    expect(await failureOf(findCredential(elsewhere, {}))).toMatchObject({ exitCode: 2 });
    const same = { ...env, AGENT_EMAIL_BASE_URL: 'https://mail.example.com/' };
    expect(await (await findCredential(same, {})).token()).toBe('ask_live_1');
  });

  test.each(['two words', 'line\nbreak', 'é', 'x'.repeat(600)])(
    'is no %j, and no error repeats it',
    async (key) => {
      const error = await failureOf(findCredential({ ...env, AGENT_EMAIL_API_KEY: key }, {}));
      expect(error).toMatchObject({ exitCode: 3, code: 'invalid_key' });
      expect(`${error.message}${error.fix}`).not.toContain(key);
    },
  );

  test.each([
    ['https://mail.example.com/', 'https://mail.example.com'],
    ['http://localhost:3000', 'http://localhost:3000'],
    ['http://127.0.0.1:3000/', 'http://127.0.0.1:3000'],
    ['http://[::1]:3000', 'http://[::1]:3000'],
    ['https://example.com/mail', 'https://example.com/mail'],
    ['https://mail.example.com/api/v1', 'https://mail.example.com'],
  ])('may go to %s', (text, url) => expect(readBaseUrl(text)).toBe(url));

  test.each([
    'http://mail.example.com',
    'http://127.0.0.1.example.com',
    'http://localhost.example.com',
    'http://10.0.0.1',
    'ftp://localhost',
    'https://user:word@mail.example.com',
    'https://mail.example.com?x=1',
    'nonsense',
    '',
  ])('does not go to %j', (text) => expect(() => readBaseUrl(text)).toThrow());
});

describe('the lock', () => {
  test('lets one after the other work', async () => {
    const path = join(folder, 'lock');
    let inside = 0;
    const work = () =>
      withLock(path, async () => {
        expect(++inside).toBe(1);
        await new Promise((done) => setTimeout(done, 20));
        inside--;
      });
    await Promise.all([work(), work(), work()]);
    expect(existsSync(path)).toBe(false);
  });

  test('is released when the work fails', async () => {
    const path = join(folder, 'lock');
    await failureOf(withLock(path, () => Promise.reject(new Error('no'))));
    expect(await withLock(path, async () => 'done')).toBe('done');
  });

  test('of a process that died, or that is too old, is taken over', async () => {
    const path = join(folder, 'lock');
    const { pid } = await new Promise<{ pid: number | undefined }>((done) => {
      const child = execFile('true', () => done({ pid: child.pid }));
    });
    writeFileSync(path, `${pid} ${hostname()} mark`);
    expect(await withLock(path, async () => 'done')).toBe('done');
    writeFileSync(path, '1 another-host mark');
    utimesSync(path, new Date(), new Date(Date.now() - 60_000));
    expect(await withLock(path, async () => 'done')).toBe('done');
    expect(existsSync(path)).toBe(false);
  });
});
