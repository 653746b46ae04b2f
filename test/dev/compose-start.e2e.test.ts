import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { generate } from 'selfsigned';
import { type Child, startChild } from '../../dev/stack/child-process.ts';
import { findFreePort } from '../../dev/stack/ports.ts';
import { type Postgres, startPostgres } from '../../dev/stack/postgres.ts';
import { type S3Server, startS3 } from '../../dev/stack/s3.ts';
import { startTemporal, type TemporalServer } from '../../dev/stack/temporal.ts';
import { findTemporalCli } from '../../dev/stack/temporal-binaries.ts';
import { waitUntil } from '../../dev/stack/wait.ts';
import { COMPILED_MODULES } from '../support/compiled-modules.ts';
import { eventually } from '../support/eventually.ts';
import { type ComposeService, interpolate, ourServices, readComposeFile } from './compose-file.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const services = ourServices(readComposeFile());
const processes = services.filter(([, { healthcheck }]) => healthcheck !== undefined);
const run = promisify(execFile);
const PORTS = [
  'API_PORT',
  'WORKER_HEALTH_PORT',
  'INBOUND_SMTP_PORT',
  'SUBMISSION_SMTP_PORT',
  'SUBMISSION_SMTP_TLS_PORT',
];

let folder: string;
let postgres: Postgres;
let s3: S3Server;
let temporal: TemporalServer;
/** The variables of an operator's `.env`. */
let variables: Record<string, string>;
/** Local addresses of the host names in the compose network. */
let addresses: Record<string, string>;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'compose-test-'));
  chmodSync(folder, 0o755);
  const secret = () => randomBytes(16).toString('hex');
  variables = {
    POSTGRES_PASSWORD: secret(),
    API_POSTGRES_PASSWORD: secret(),
    WORKER_POSTGRES_PASSWORD: secret(),
    ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    SIGNING_KEY: randomBytes(32).toString('base64'),
    // The only secret that the embedded S3 server accepts.
    S3_SECRET_ACCESS_KEY: 'S3RVER',
    MAIL_DOMAIN: 'agents.example',
    PUBLIC_URL: 'https://api.agents.example',
  };
  const log = () => undefined;
  const executable = await findTemporalCli({
    cacheDir: join(ROOT, '.cache', 'temporal'),
    environment: process.env,
    log,
  });
  [postgres, s3, temporal] = await Promise.all([
    startPostgres({
      dataDir: join(folder, 'postgres'),
      port: await findFreePort(),
      password: variables.POSTGRES_PASSWORD ?? '',
      logFile: join(folder, 'postgres.log'),
      durable: false,
      log,
    }),
    startS3({ directory: join(folder, 's3'), port: await findFreePort(), bucket: 'agent-email' }),
    startTemporal({ executable, port: await findFreePort(), logFile: join(folder, 'temporal.log') }),
  ]);
  await postgres.ensureDatabase('agent_email');
  addresses = {
    'postgres:5432': `127.0.0.1:${postgres.port}`,
    'temporal:7233': temporal.address,
    'http://s3:7070': s3.environment.S3_ENDPOINT,
    '/tls': folder,
  };
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'mail.agents.example' }]);
  writeFileSync(join(folder, 'key.pem'), key);
  writeFileSync(join(folder, 'cert.pem'), cert);
}, 120_000);

afterAll(async () => {
  await Promise.all([postgres?.stop(), s3?.stop(), temporal?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

interface Start {
  script: string;
  environment: NodeJS.ProcessEnv;
  /** The health check with the local ports. */
  probe: string[];
}

/** The command and environment of the container, with other addresses, ports and user. */
async function startOf({ command = [], environment = {}, healthcheck }: ComposeService): Promise<Start> {
  const moved = new Map<string, string>();
  const values: Record<string, string> = {};
  for (const [name, text] of Object.entries(environment)) {
    let value = interpolate(text, variables);
    for (const [from, to] of Object.entries(addresses)) value = value.replace(from, to);
    if (PORTS.includes(name)) {
      const port = String(await findFreePort());
      moved.set(`:${value}/`, `:${port}/`);
      value = port;
    }
    values[name] = value;
  }
  const hidden = { SMTP_RELAY_HOST: '127.0.0.1', S3_ACCESS_KEY_ID: s3.environment.S3_ACCESS_KEY_ID };
  const probe = (healthcheck?.test ?? []).slice(1).map((word) => {
    for (const [from, to] of moved) word = word.replace(from, to);
    return word;
  });
  return {
    script: join(ROOT, command[1] ?? ''),
    environment: { ...COMPILED_MODULES, PATH: process.env.PATH ?? '', ...values, ...hidden },
    probe,
  };
}

describe('each of our services with the command of docker-compose.yml', () => {
  test('migrate succeeds twice', async () => {
    const service = services.find(([name]) => name === 'migrate')?.[1] as ComposeService;
    const { script, environment } = await startOf(service);
    const first = await run(process.execPath, [script], { env: environment, cwd: ROOT });
    expect(first.stdout).toMatch(/^Applied Migration/);
    const second = await run(process.execPath, [script], { env: environment, cwd: ROOT });
    expect(second.stdout).toBe('The schema is up to date\n');
  });

  test.each(processes)(
    '%s becomes healthy and exits on SIGTERM',
    async (name, service) => {
      const { script, environment, probe } = await startOf(service);
      const child: Child = await startChild({
        name,
        command: process.execPath,
        args: [script],
        env: environment,
        cwd: ROOT,
        logFile: join(folder, `${name}.log`),
        stopTimeoutMs: 20_000,
      });
      try {
        await waitUntil(() => run(process.execPath, probe.slice(1)), {
          what: name,
          timeoutMs: 60_000,
          failed: child.failure,
        });
      } finally {
        await child.stop();
      }
      await eventually(() => expect(child.exitReason()).toBe('ended with status 0'));
    },
    120_000,
  );
});
