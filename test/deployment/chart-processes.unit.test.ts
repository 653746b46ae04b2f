import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { SECRET_SETTINGS } from '../../dev/chart-schema.ts';
import { ConfigSchema, loadConfig } from '../../platform/config.ts';
import { ourServices, readComposeFile } from '../dev/compose-file.ts';
import {
  componentOf,
  containerOf,
  EXAMPLES,
  environmentOf,
  exampleValues,
  findObject,
  objectsOf,
  ofKind,
  podOf,
  selectObject,
  withPods,
} from '../support/chart.ts';
import {
  createValidator,
  findHelmObstacle,
  findSchemaObstacle,
  KUBERNETES_VERSIONS,
  renderChart,
} from '../support/helm.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const compose = readComposeFile();
const composed = ourServices(compose);
const processes = composed.filter(([name]) => name !== 'migrate');

const obstacle = findHelmObstacle();
const schemaObstacle = obstacle ?? findSchemaObstacle();
if (schemaObstacle) process.stderr.write(`The chart is not checked against Kubernetes: ${schemaObstacle}.\n`);

(schemaObstacle ? describe.skip : describe).each(KUBERNETES_VERSIONS)('Kubernetes %s', (version) => {
  test.each(EXAMPLES)('accepts every object of the example %s', (example) => {
    const validate = createValidator(version);
    // Objects of the Prometheus Operator have no schema there; a test below compares them.
    const objects = objectsOf(example).filter(({ apiVersion }) => apiVersion !== 'monitoring.coreos.com/v1');
    expect(objects.length).toBeGreaterThan(15);
    expect(objects.flatMap(validate)).toEqual([]);
  });
});

(obstacle ? describe.skip : describe)('the processes', () => {
  test('are those of docker-compose.yml', () => {
    const names = processes.map(([name]) => name).toSorted();
    expect(ofKind('production', 'Deployment').map(componentOf).toSorted()).toEqual(names);
    // Without its certificate submission-smtp is off, as without its profile in the compose file.
    expect(ofKind('minimal', 'Deployment').map(componentOf).toSorted()).toEqual(
      names.filter((name) => name !== 'submission-smtp'),
    );
  });

  test.each(composed)('%s runs the same command, with the same options of Node', (name, service) => {
    const { args, env } = containerOf(
      findObject('production', name === 'migrate' ? 'Job' : 'Deployment', name),
    );
    expect(args).toEqual(service.command);
    expect(existsSync(join(ROOT, args[1] ?? ''))).toBe(true);
    const options = env.find((variable) => variable.name === 'NODE_OPTIONS')?.value;
    expect(options).toBe(service.environment?.NODE_OPTIONS);
  });

  test.each(composed)('%s gets an environment that it starts with, in every example', (name) => {
    for (const example of EXAMPLES) {
      const kind = name === 'migrate' ? 'Job' : 'Deployment';
      const object = ofKind(example, kind).find((candidate) => componentOf(candidate) === name);
      if (!object) continue;
      const container = containerOf(object);
      const names = container.env.map((variable) => variable.name);
      expect(new Set(names).size).toBe(names.length);
      // The others are Node's own.
      const known = [...Object.keys(ConfigSchema.properties), 'NODE_OPTIONS', 'NODE_EXTRA_CA_CERTS'];
      expect(names.filter((variable) => !known.includes(variable))).toEqual([]);
      // Throws if a required setting is missing, or a value has the wrong form.
      const config = loadConfig(environmentOf(container));
      expect(config.NODE_ENV).toBe('production');
    }
  });

  test('numbers stay as they are written', () => {
    const { INBOUND_MAX_SIZE_BYTES, OTEL_TRACES_SAMPLER_ARG } = loadConfig(
      environmentOf(containerOf(findObject('production', 'Deployment', 'inbound-smtp'))),
    );
    expect({ INBOUND_MAX_SIZE_BYTES, OTEL_TRACES_SAMPLER_ARG }).toEqual({
      INBOUND_MAX_SIZE_BYTES: 37_748_736,
      OTEL_TRACES_SAMPLER_ARG: 0.01,
    });
  });

  test('a setting of a process overrides the common one, also to false', () => {
    const objects = renderChart([
      ...exampleValues('minimal'),
      '--set',
      'settings.SCHEDULES_ENABLED=true,processes.worker-outbound.settings.SCHEDULES_ENABLED=false',
    ]);
    const valueIn = (component: string) =>
      environmentOf(containerOf(selectObject(objects, 'Deployment', component))).SCHEDULES_ENABLED;
    expect([valueIn('worker-outbound'), valueIn('worker-inbound')]).toEqual(['false', 'true']);
  });
});

(obstacle ? describe.skip : describe)('secrets', () => {
  test('are never part of the chart, only references', () => {
    for (const example of EXAMPLES) {
      expect(ofKind(example, 'Secret')).toEqual([]);
      for (const object of withPods(example))
        for (const { name, value, valueFrom } of containerOf(object).env)
          if (SECRET_SETTINGS.includes(name) || name === 'DATABASE_URL')
            expect({ name, value, secret: valueFrom?.secretKeyRef.name }).toEqual({
              name,
              value: undefined,
              secret: expect.stringMatching(/^agent-email/),
            });
    }
  });

  test('reach only the processes that need them', () => {
    const readers = (example: string, key: string) =>
      withPods(example)
        .filter((object) =>
          containerOf(object).env.some(({ valueFrom }) => valueFrom?.secretKeyRef.key === key),
        )
        .map(componentOf);
    for (const example of EXAMPLES) expect(readers(example, 'MIGRATION_DATABASE_URL')).toEqual(['migrate']);
    expect(readers('minimal', 'API_DATABASE_URL')).toEqual(['api', 'migrate']);
    expect(readers('minimal', 'WORKER_DATABASE_URL')).not.toContain('api');
    // Providers deliver mail for any tenant.
    expect(readers('aws', 'WORKER_DATABASE_URL')).toContain('api');
    expect(readers('production', 'SMTP_RELAY_PASSWORD')).toEqual(['worker-outbound']);
    expect(readers('production', 'OAUTH_GOOGLE_CLIENT_SECRET')).toEqual(['api']);
    expect(readers('minimal', 'PROVIDER_RAW_SECRET')).toEqual([]);
  });

  test('the owner of the schema can have a Secret of its own', () => {
    const { env } = containerOf(findObject('production', 'Job', 'migrate'));
    expect(env.find(({ name }) => name === 'MIGRATION_DATABASE_URL')?.valueFrom?.secretKeyRef.name).toBe(
      'agent-email-owner',
    );
  });

  test.each([
    ['worker-outbound', ['DKIM_SHARED_PRIVATE_KEY_FILE', 'SMTP_RELAY_TLS_CA_FILE']],
    ['inbound-smtp', ['INBOUND_SMTP_TLS_KEY_FILE', 'INBOUND_SMTP_TLS_CERT_FILE']],
    ['submission-smtp', ['SUBMISSION_SMTP_TLS_KEY_FILE', 'SUBMISSION_SMTP_TLS_CERT_FILE']],
  ])('%s reads %j from mounted Secrets', (component, names) => {
    const object = findObject('production', 'Deployment', component);
    const environment = environmentOf(containerOf(object));
    // A Secret of type kubernetes.io/tls has these keys.
    const files = podOf(object).volumes.flatMap(({ name, secret }) => {
      const path = containerOf(object).volumeMounts.find((mount) => mount.name === name)?.mountPath;
      if (!secret) return [];
      return (secret.items?.map((item) => item.path) ?? ['tls.key', 'tls.crt']).map(
        (file) => `${path}/${file}`,
      );
    });
    expect(files.toSorted()).toEqual(names.map((name) => environment[name]).toSorted());
  });
});
