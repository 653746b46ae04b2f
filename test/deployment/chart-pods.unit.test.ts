import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { SEARCH_ATTRIBUTES } from '../../platform/temporal.ts';
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
  withPods,
} from '../support/chart.ts';
import { findHelmObstacle, renderChart } from '../support/helm.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const compose = readComposeFile();
const processes = ourServices(compose).filter(([name]) => name !== 'migrate');
const obstacle = findHelmObstacle();

(obstacle ? describe.skip : describe)('pods', () => {
  test('run without root, capabilities or a writable file system, as the user of the image', () => {
    // The user "node" of Node's own images has the id 1000.
    const dockerfile = read('Dockerfile');
    expect(dockerfile).toMatch(/^FROM node:\S+ AS node$/m);
    expect(dockerfile).toMatch(/\nFROM node AS app\n(?:(?!FROM ).*\n)*USER node\n/);
    expect(dockerfile.slice(dockerfile.lastIndexOf('\nFROM '))).toMatch(/^\nFROM app\n(?!USER )/);
    for (const object of EXAMPLES.flatMap(withPods)) {
      expect(podOf(object)).toMatchObject({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        shareProcessNamespace: true,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 1000,
          runAsGroup: 1000,
          fsGroup: 1000,
          seccompProfile: { type: 'RuntimeDefault' },
        },
      });
      const { securityContext, resources } = containerOf(object);
      expect(securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      expect(resources).toMatchObject({
        requests: { cpu: expect.anything(), memory: expect.anything() },
        limits: { memory: expect.anything() },
      });
    }
  });

  test('run the image of the chart’s version', () => {
    const { appVersion } = parse(read('charts/agent-email/Chart.yaml')) as { appVersion: string };
    for (const object of withPods('minimal')) {
      const expected =
        componentOf(object) === 'temporal-setup'
          ? compose.services['temporal-namespace']?.image
          : `registry.example.org/agent-email:${appVersion}`;
      expect(containerOf(object).image).toBe(expected);
    }
  });

  test('run the digest of an image, and what values add', () => {
    const digest = `sha256:${'0'.repeat(64)}`;
    const objects = renderChart([...exampleValues('production'), '--set', `image.digest=${digest}`]);
    const ours = objects.filter(
      (object) =>
        object.kind === 'Deployment' || (object.kind === 'Job' && componentOf(object) === 'migrate'),
    );
    expect(ours.length).toBe(processes.length + 1);
    for (const object of ours) {
      const { image, env, volumeMounts } = containerOf(object);
      expect(image).toMatch(new RegExp(`^registry.example.org/agent-email:[\\d.]+@${digest}$`));
      expect(env).toContainEqual({ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.crt' });
      expect(volumeMounts).toContainEqual({ name: 'ca', mountPath: '/ca', readOnly: true });
      expect(podOf(object).volumes).toContainEqual({ name: 'ca', configMap: { name: 'company-ca' } });
    }
  });

  test.each(processes)('of %s are probed where the process answers', (name) => {
    const container = containerOf(findObject('production', 'Deployment', name));
    const environment = environmentOf(container);
    const port = Number(name === 'api' ? environment.API_PORT : environment.WORKER_HEALTH_PORT);
    const host = name === 'api' ? environment.API_HOST : environment.WORKER_HEALTH_HOST;
    expect(host).toBe('0.0.0.0');
    const code = read(name === 'api' ? 'api/health.routes.ts' : 'workers/worker-process.ts');
    const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe].map(
      (probe) => probe?.httpGet,
    );
    expect(probes.map((probe) => probe?.path)).toEqual(['/health/live', '/health/live', '/health/ready']);
    for (const probe of probes) {
      expect(code).toContain(`'${probe?.path}'`);
      expect(container.ports?.find((served) => served.name === probe?.port)?.containerPort).toBe(port);
    }
  });

  test.each(processes)('of %s listen on the ports that are declared', (name) => {
    const container = containerOf(findObject('production', 'Deployment', name));
    const environment = environmentOf(container);
    const variables: Record<string, string[]> = {
      api: ['API_PORT'],
      'inbound-smtp': ['WORKER_HEALTH_PORT', 'INBOUND_SMTP_PORT'],
      'submission-smtp': ['WORKER_HEALTH_PORT', 'SUBMISSION_SMTP_PORT', 'SUBMISSION_SMTP_TLS_PORT'],
    };
    expect(container.ports?.map(({ containerPort }) => containerPort)).toEqual(
      (variables[name] ?? ['WORKER_HEALTH_PORT']).map((variable) => Number(environment[variable])),
    );
  });

  test.each(processes)('of %s have the time to stop that the page on upgrades names', (name) => {
    const row = read('docs/upgrades.md')
      .split('\n')
      .find((line) => {
        const [, cell = ''] = line.split('|');
        return (name === 'api' ? /^ API $/ : new RegExp(`\`${name}\``)).test(cell);
      });
    const others = /^\| other workers \|.*\| (\d+) (s|min) \|$/m.exec(read('docs/upgrades.md'));
    const [, amount, unit] = (row && /\| (\d+) (s|min) \|$/.exec(row)) ?? others ?? [];
    const object = findObject('production', 'Deployment', name);
    const pause = Number(containerOf(object).lifecycle?.preStop.exec.command[1] ?? 0);
    expect(podOf(object).terminationGracePeriodSeconds).toBe(
      Number(amount) * (unit === 'min' ? 60 : 1) + pause,
    );
    // Only behind a Service, which takes a moment to send no more connections.
    const hasService = ofKind('production', 'Service').some((service) => componentOf(service) === name);
    expect(pause > 0).toBe(hasService);
  });
});

(obstacle ? describe.skip : describe)('before a version starts', () => {
  test.each(['migrate', 'temporal-setup'])('%s runs, with nothing that the chart creates', (component) => {
    for (const example of ['minimal', 'production']) {
      const job = findObject(example, 'Job', component);
      expect(job.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' });
      expect(podOf(job).serviceAccountName).toBeUndefined();
      const created = objectsOf(example)
        .filter(({ metadata }) => !metadata.annotations?.['helm.sh/hook'])
        .map(({ metadata }) => metadata.name);
      const used = containerOf(job).env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef.name ?? []);
      expect(used.filter((name) => created.includes(name))).toEqual([]);
    }
  });

  test('the namespace and its search attributes are created as by docker-compose.yml', () => {
    const [script = ''] = containerOf(findObject('minimal', 'Job', 'temporal-setup')).args;
    const composeScript = compose.configs['temporal-namespace']?.content ?? '';
    expect(script.replaceAll('"$TEMPORAL_NAMESPACE"', 'default')).toBe(composeScript.replaceAll('$$', '$'));
    expect(/for name in ([\w ]+); do/.exec(script)?.[1]?.split(' ')).toEqual([...SEARCH_ATTRIBUTES]);
  });

  test('Temporal Cloud, whose search attributes are created elsewhere, can do without', () => {
    expect(ofKind('aws', 'Job').map(componentOf)).toEqual(['migrate']);
  });
});
