import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { Ajv } from 'ajv';
import formats from 'ajv-formats';
import { ConfigSchema } from '../../platform/config.ts';
import { SEARCH_ATTRIBUTES } from '../../platform/temporal.ts';
import { ourServices, readComposeFile } from './compose-file.ts';

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

describe('Dockerfile', () => {
  const folders = [...dockerfile.matchAll(/^COPY (\w+) \1$/gm)].map(([, folder]) => folder ?? '');

  test('copies every folder of production code', () => {
    expect(folders.toSorted()).toEqual(
      ['activities', 'api', 'domain', 'migrations', 'platform', 'workers', 'workflows'].toSorted(),
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
