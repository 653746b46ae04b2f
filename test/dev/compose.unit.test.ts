import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { MEMORY_ENVIRONMENTS } from '../../dev/services.ts';
import { ConfigSchema, loadConfig } from '../../platform/config.ts';
import { SEARCH_ATTRIBUTES } from '../../platform/temporal.ts';
import { interpolate, ourServices, readComposeFile } from './compose-file.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const compose = readComposeFile();
const ours = ourServices(compose);
const dockerfile = readFileSync(join(ROOT, 'Dockerfile'), 'utf8');

describe('docker-compose.yml', () => {
  test('follows the Compose specification', () => {
    // dclint carries the specification's own schema; its dialect is named by an address Ajv does not know.
    const file = join(ROOT, 'node_modules/dclint/schemas/compose.schema.json');
    const { $schema: _dialect, ...schema } = JSON.parse(readFileSync(file, 'utf8'));
    const ajv = new Ajv({ strict: false, allErrors: true });
    formats.default(ajv);
    const validate = ajv.compile(schema);
    validate(compose);
    expect(validate.errors ?? []).toEqual([]);
  });

  test('keeps as little memory as npm start and the chart', () => {
    const image = Object.fromEntries(
      [...dockerfile.matchAll(/(MALLOC_\w+|NODE_OPTIONS)=(\S+)/g)].map(([, name, value]) => [name, value]),
    );
    const chart = readFileSync(join(ROOT, 'charts/agent-email/templates/_helpers.tpl'), 'utf8');
    const inChart = (name: string) =>
      new RegExp(`^${name}:\n(?:  .*\n)*?  nodeOptions: (.*)$`, 'm').exec(chart)?.[1];
    const { api, workers, maintenance } = MEMORY_ENVIRONMENTS;
    expect(workers).toEqual(image);
    for (const [name, expected] of Object.entries({ api, 'worker-maintenance': maintenance })) {
      const { NODE_OPTIONS } = compose.services[name]?.environment ?? {};
      expect({ ...image, NODE_OPTIONS }).toEqual(expected);
      expect(inChart(name)).toBe(NODE_OPTIONS);
    }
  });

  test('has every service of a deployment, the API twice', () => {
    expect(Object.keys(compose.services)).toEqual(
      expect.arrayContaining([
        'postgres',
        'temporal',
        'temporal-ui',
        'temporal-namespace',
        's3',
        'rspamd',
        'relay',
        'migrate',
        'api',
        'worker-outbound',
        'worker-inbound',
        'worker-webhooks',
        'worker-maintenance',
        'inbound-smtp',
        'submission-smtp',
      ]),
    );
    expect(compose.services.api?.deploy?.replicas).toBe(2);
  });

  test('refers only to services, networks and volumes that it defines', () => {
    for (const service of Object.values(compose.services)) {
      for (const name of Object.keys(service.depends_on ?? {})) expect(compose.services).toHaveProperty(name);
      for (const name of service.networks ?? []) expect(compose.networks).toHaveProperty(name);
    }
  });

  test('waits only for services with a health check to be healthy', () => {
    for (const { depends_on = {} } of Object.values(compose.services))
      for (const [name, { condition }] of Object.entries(depends_on))
        if (condition === 'service_healthy') expect(compose.services[name]?.healthcheck).toBeDefined();
  });

  test('registers the search attributes of the workflows', () => {
    const listed = /for name in ([\w ]+); do/.exec(compose.configs['temporal-namespace']?.content ?? '')?.[1];
    expect(listed?.split(' ')).toEqual([...SEARCH_ATTRIBUTES]);
  });

  test('shows the published submission ports to users of email clients', () => {
    const { SUBMISSION_SMTP_PORT, SUBMISSION_SMTP_TLS_PORT } = compose.services.api?.environment ?? {};
    const published = compose.services['submission-smtp']?.ports?.map((port) => port.split(':')[0]);
    expect(published).toEqual([SUBMISSION_SMTP_PORT, SUBMISSION_SMTP_TLS_PORT]);
  });

  test('publishes only SMTP beyond this host', () => {
    const wide = Object.values(compose.services)
      .flatMap(({ ports = [] }) => ports)
      .filter((port) => !port.startsWith('127.0.0.1:'));
    expect(wide).toEqual(['25:2526', '587:2587', '465:2465']);
  });
});

describe.each(ours)('%s', (_name, service) => {
  test('runs without root, capabilities or a writable file system', () => {
    expect(service).toMatchObject({
      user: 'node',
      read_only: true,
      cap_drop: ['ALL'],
      security_opt: ['no-new-privileges:true'],
    });
  });

  test('names an existing process, and has a health check unless it exits by itself', () => {
    const [program, script = ''] = service.command ?? [];
    expect(program).toBe('node');
    expect(existsSync(join(ROOT, script))).toBe(true);
    const endsByItself = service.restart?.startsWith('on-failure') ?? false;
    expect(service.healthcheck !== undefined).toBe(!endsByItself);
  });

  test('sets only settings that exist, and all required ones', () => {
    // Node's own variables are not settings of the service.
    const names = Object.keys(service.environment ?? {}).filter((name) => name !== 'NODE_OPTIONS');
    expect(Object.keys(ConfigSchema.properties)).toEqual(expect.arrayContaining(names));
    const properties = ConfigSchema.properties as Record<string, { default?: unknown }>;
    const required = ConfigSchema.required.filter((name) => properties[name]?.default === undefined);
    expect(names).toEqual(expect.arrayContaining(required));
  });

  test('contains no secret', () => {
    for (const [name, value] of Object.entries(service.environment ?? {}))
      if (/KEY$|SECRET|PASSWORD|TOKEN/.test(name)) expect(value).toMatch(/^\$\{/);
  });
});

describe('settings', () => {
  /** Belong to the file's own network. */
  const FIXED = [
    'NODE_ENV',
    'DATABASE_URL',
    'MIGRATION_DATABASE_URL',
    'API_DATABASE_URL',
    'WORKER_DATABASE_URL',
    'TEMPORAL_METRICS_ADDRESS',
    'API_HOST',
    'API_PORT',
    'INBOUND_SMTP_HOST',
    'INBOUND_SMTP_PORT',
    'SUBMISSION_SMTP_HOST',
    'SUBMISSION_SMTP_PORT',
    'SUBMISSION_SMTP_TLS_PORT',
    'SUBMISSION_SMTP_TLS_KEY_FILE',
    'SUBMISSION_SMTP_TLS_CERT_FILE',
    'WORKER_HEALTH_HOST',
    'WORKER_HEALTH_PORT',
  ];
  const API_ONLY =
    /^(RATE_LIMIT|ORGANIZATION_RATE|MCP_|STREAM|SIGNALS_|TRUST_PROXY|OAUTH_|PROVIDER_|SES_TOPIC|SES_INBOUND_BUCKETS|SUBMISSION_SMTP_PUBLIC)/;
  const OF_ONE_PROCESS: [RegExp, string][] = [
    [/^(DKIM_|SMTP_RELAY_USER|SMTP_RELAY_PASSWORD)/, 'worker-outbound'],
    [/^INBOUND_SMTP_(HOSTNAME|TLS)/, 'inbound-smtp'],
  ];
  const WORKERS_ONLY = /^(RSPAMD_URL|INBOUND_SMTP_MAX|SCHEDULES_|INBOUND_CONCURRENCY|WORKER_CONCURRENCY)/;

  function readersOf(name: string): string[] {
    const [, only] = OF_ONE_PROCESS.find(([pattern]) => pattern.test(name)) ?? [];
    if (only) return [only];
    if (API_ONLY.test(name)) return ['api'];
    if (name === 'SUBMISSION_SMTP_HOSTNAME') return ['api', 'submission-smtp'];
    const processes = ours.map(([process]) => process);
    return WORKERS_ONLY.test(name)
      ? processes.filter((process) => process !== 'api' && process !== 'migrate')
      : processes;
  }

  test.each(Object.keys(ConfigSchema.properties).filter((name) => !FIXED.includes(name)))(
    '%s of .env reaches every process that reads it',
    (name) => {
      for (const process of readersOf(name)) {
        const value = compose.services[process]?.environment?.[name] ?? 'absent';
        expect(`${process}: ${value}`).toMatch(new RegExp(`: \\$\\{${name}:[?-]`));
      }
    },
  );

  test('an empty one has its default', () => {
    const key = Buffer.alloc(32, 1).toString('base64');
    const required = {
      POSTGRES_PASSWORD: 'x',
      API_POSTGRES_PASSWORD: 'x',
      WORKER_POSTGRES_PASSWORD: 'x',
      S3_SECRET_ACCESS_KEY: 'x',
      ENCRYPTION_KEY: key,
      SIGNING_KEY: key,
      PUBLIC_URL: 'https://api.example',
      MAIL_DOMAIN: 'agents.example',
    };
    for (const [, { environment = {} }] of ours) {
      const values = Object.entries(environment).map(([name, value]) => [
        name,
        interpolate(String(value), required),
      ]);
      expect(loadConfig(Object.fromEntries(values)).NODE_ENV).toBe('production');
    }
  });
});

describe('the container of operators', () => {
  const { tools } = compose.services;

  test('has the PostgreSQL client of the server', () => {
    expect(tools?.build).toEqual({ context: '.', target: 'tools' });
    expect(dockerfile).toContain(`FROM ${compose.services.postgres?.image} AS tools\n`);
  });

  test('has what backup, restore, reconciliation and the replacement of keys read', () => {
    expect(tools).toMatchObject({
      profiles: ['tools'],
      entrypoint: ['node'],
      read_only: true,
      cap_drop: ['ALL'],
    });
    expect(tools?.volumes).toEqual(['./backups:/backups']);
    expect(tools?.environment).toMatchObject({
      ...compose.services['worker-webhooks']?.environment,
      MIGRATION_DATABASE_URL: compose.services.migrate?.environment?.MIGRATION_DATABASE_URL,
      API_DATABASE_URL: compose.services.migrate?.environment?.API_DATABASE_URL,
      WORKER_DATABASE_URL: compose.services.migrate?.environment?.WORKER_DATABASE_URL,
    });
  });
});

describe('Dockerfile', () => {
  const folders = [...dockerfile.matchAll(/^COPY (\w+) \1$/gm)].map(([, folder]) => folder ?? '');

  test('copies every folder of production code', () => {
    expect(folders.toSorted()).toEqual(
      ['activities', 'api', 'domain', 'migrations', 'platform', 'web', 'workers', 'workflows'].toSorted(),
    );
  });

  test('installs every imported package: none is a devDependency', () => {
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    const imported = new Set(folders.flatMap((folder) => importedPackages(join(ROOT, folder))));
    expect([...imported].filter((name) => !(name in dependencies))).toEqual([]);
  });
});

/** Packages in `import … from '…'` and `import('…')`, except Node's own, relative files and types. SQL has `distinct from`. */
function importedPackages(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => {
      const text = readFileSync(join(folder, file), 'utf8').replace(/^import type .*$/gm, '');
      return [
        ...text.matchAll(/(?:(?<!distinct )from|import\()\s*'((?:@[\w.-]+\/)?[\w.-]+)(?:\/[^']*)?'/g),
      ].map(([, name]) => name ?? '');
    })
    .filter((name) => !name.startsWith('.'));
}
