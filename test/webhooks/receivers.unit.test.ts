import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, jest, test } from '@jest/globals';
import { findFreePort } from '../../dev/stack/ports.ts';
import { signWebhook, type UnsignedWebhook } from '../../platform/webhook-signature.ts';
import { eventually } from '../support/eventually.ts';

jest.setTimeout(60_000);

const SAMPLES = resolve(import.meta.dirname, '../../docs/receivers');
const folder = mkdtempSync(join(tmpdir(), 'agent-email-receivers-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The sample receivers of docs/webhooks.md and the commands that run them. */
const RECEIVERS = [
  {
    language: 'TypeScript',
    needs: [process.execPath, '--version'],
    command: () => [process.execPath, join(SAMPLES, 'receive.ts')],
  },
  {
    language: 'Python',
    needs: ['python3', '--version'],
    command: () => ['python3', join(SAMPLES, 'receive.py')],
  },
  {
    language: 'Go',
    needs: ['go', 'version'],
    command: () => {
      const program = join(folder, 'receive');
      // Without cgo the standard library compiles in half the time on a machine without a build cache.
      const env = { ...process.env, CGO_ENABLED: '0' };
      execFileSync('go', ['build', '-o', program, join(SAMPLES, 'receive.go')], { stdio: 'inherit', env });
      return [program];
    },
  },
];

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;
const nowSeconds = () => Math.floor(Date.now() / 1000);
const eventBody = (id: string) =>
  JSON.stringify({ id, type: 'message.received', data: { subject: 'Grüße 🎉' } });

describe.each(RECEIVERS)('the receiver in $language', ({ language, needs, command }) => {
  const [program = '', ...versionArgs] = needs;
  const isInstalled = spawnSync(program, versionArgs).status === 0;
  // Skipped tests are counted, and .ci/run reports them.
  const testIfInstalled = isInstalled ? test : test.skip;
  if (!isInstalled) console.warn(`${language} is not installed: its receiver is not tested`);

  const secret = newSecret();
  let child: ChildProcess | undefined;
  let url = '';
  let output = '';
  beforeAll(async () => {
    if (!isInstalled) return;
    const port = await findFreePort();
    url = `http://127.0.0.1:${port}/hook`;
    const [executable = '', ...args] = command();
    child = spawn(executable, args, {
      env: { ...process.env, WEBHOOK_SECRET: secret, PORT: String(port), NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout?.on('data', (chunk) => {
      output += chunk;
    });
    await eventually(() => expect(output).toContain('listening'), 30_000);
  }, 240_000);
  afterAll(async () => {
    if (!child) return;
    const ended = once(child, 'close');
    child.kill('SIGKILL');
    await ended;
  });

  const deliver = async (
    signed: Partial<UnsignedWebhook>,
    sent: { body?: string; headers?: object } = {},
  ) => {
    const eventId = signed.eventId ?? 'evt_1';
    const body = signed.body ?? eventBody(eventId);
    const headers = signWebhook({ secret, eventId, timestampSeconds: nowSeconds(), ...signed, body });
    const response = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers, ...sent.headers },
      body: sent.body ?? body,
    });
    await response.body?.cancel();
    return response.status;
  };

  testIfInstalled('accepts a signed delivery and handles a repeated event once', async () => {
    await expect(deliver({ eventId: 'evt_twice' })).resolves.toBe(204);
    await expect(deliver({ eventId: 'evt_twice' })).resolves.toBe(204);
    await eventually(() => expect(output.match(/evt_twice message\.received/g)).toHaveLength(1));
  });

  testIfInstalled('accepts deliveries signed with either secret during a rotation', async () => {
    await expect(deliver({ secret: newSecret(), previousSecret: secret })).resolves.toBe(204);
    await expect(deliver({ secret, previousSecret: newSecret() })).resolves.toBe(204);
  });

  testIfInstalled('rejects modified, stale, foreign and unsigned deliveries', async () => {
    await expect(deliver({}, { body: eventBody('evt_other') })).resolves.toBe(400);
    await expect(deliver({}, { headers: { 'webhook-id': 'evt_other' } })).resolves.toBe(400);
    await expect(deliver({ timestampSeconds: nowSeconds() - 301 })).resolves.toBe(400);
    await expect(deliver({ timestampSeconds: nowSeconds() + 330 })).resolves.toBe(400);
    await expect(deliver({}, { headers: { 'webhook-timestamp': 'now' } })).resolves.toBe(400);
    await expect(deliver({ secret: newSecret() })).resolves.toBe(400);
    for (const signature of ['', 'v1,', 'v1', 'v2,AAAA', 'ü'.normalize('NFD').slice(0, 1)])
      await expect(deliver({}, { headers: { 'webhook-signature': signature } })).resolves.toBe(400);
    expect(output).not.toContain('evt_other');
  });
});
