import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
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
  withPods,
} from '../support/chart.ts';
import { findHelmObstacle, type KubernetesObject, renderChart } from '../support/helm.ts';
import { findPromtoolObstacle, runPromtool } from '../support/promtool.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const compose = readComposeFile();
const processes = ourServices(compose).filter(([name]) => name !== 'migrate');
const obstacle = findHelmObstacle();
const promtoolObstacle = obstacle ?? findPromtoolObstacle();

(obstacle ? describe.skip : describe)('traffic', () => {
  test('reaches each Service’s pods at ports that they have', () => {
    for (const service of EXAMPLES.flatMap((example) => ofKind(example, 'Service'))) {
      const container = containerOf(findObject('production', 'Deployment', componentOf(service)));
      const ports = container.ports?.map(({ name }) => name);
      for (const { targetPort } of service.spec.ports) expect(ports).toContain(targetPort);
      // Metrics and health are for the cluster.
      expect(service.spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort)).not.toContain(
        'health',
      );
    }
  });

  test('selectors match the pods of one process', () => {
    for (const object of objectsOf('production')) {
      const selector = {
        Service: object.spec?.selector,
        PodDisruptionBudget: object.spec?.selector?.matchLabels,
        NetworkPolicy: object.spec?.podSelector?.matchLabels,
      }[object.kind];
      if (!selector) continue;
      const matching = withPods('production').filter((candidate) => {
        const labels = (candidate.spec.template?.metadata ?? candidate.metadata).labels;
        return Object.entries(selector).every(([name, value]) => labels[name] === value);
      });
      expect(matching.map(componentOf)).toEqual([componentOf(object)]);
    }
    for (const kind of ['PodDisruptionBudget', 'NetworkPolicy'])
      expect(ofKind('production', kind).map(componentOf).toSorted()).toEqual(
        processes.map(([name]) => name).toSorted(),
      );
  });

  test('SMTP listeners get the addresses of their clients, at the ports of docker-compose.yml', () => {
    for (const name of ['inbound-smtp', 'submission-smtp']) {
      const { spec } = findObject('production', 'Service', name);
      expect(spec).toMatchObject({ type: 'LoadBalancer', externalTrafficPolicy: 'Local' });
      const container = containerOf(findObject('production', 'Deployment', name));
      const numbers = new Map(container.ports?.map((port) => [port.name, port.containerPort]));
      expect(
        spec.ports.map(
          ({ port, targetPort }: { port: number; targetPort: string }) =>
            `${port}:${numbers.get(targetPort)}`,
        ),
      ).toEqual(compose.services[name]?.ports);
    }
  });

  test('the API shows the ports of the submission Service', () => {
    const { SUBMISSION_SMTP_PORT, SUBMISSION_SMTP_TLS_PORT } = environmentOf(
      containerOf(findObject('production', 'Deployment', 'api')),
    );
    const ports = findObject('production', 'Service', 'submission-smtp').spec.ports as { port: number }[];
    expect([Number(SUBMISSION_SMTP_PORT), Number(SUBMISSION_SMTP_TLS_PORT)]).toEqual(
      ports.map(({ port }) => port),
    );
  });

  test('the Ingress leads the host of PUBLIC_URL to the API', () => {
    const { metadata, spec } = findObject('production', 'Ingress', 'api');
    const service = findObject('production', 'Service', 'api');
    expect(spec.rules).toEqual([
      {
        host: 'api.example.org',
        http: {
          paths: [
            {
              path: '/',
              pathType: 'Prefix',
              backend: {
                service: { name: service.metadata.name, port: { name: service.spec.ports[0].name } },
              },
            },
          ],
        },
      },
    ]);
    expect(spec.tls).toEqual([{ hosts: ['api.example.org'], secretName: 'mail-agent-email-tls' }]);
    expect(metadata.annotations).toMatchObject({ 'cert-manager.io/cluster-issuer': 'letsencrypt' });
  });

  test('autoscaled processes have no number of replicas, which an upgrade would reset', () => {
    const scaled = ofKind('production', 'HorizontalPodAutoscaler').map(componentOf);
    expect(scaled).toEqual(['api', 'worker-webhooks']);
    for (const object of ofKind('production', 'Deployment'))
      expect(object.spec.replicas === undefined).toBe(scaled.includes(componentOf(object)));
    expect(findObject('minimal', 'Deployment', 'api').spec.replicas).toBe(
      compose.services.api?.deploy?.replicas,
    );
  });
});

(obstacle ? describe.skip : describe)('monitoring', () => {
  const alertsOf = (objects: KubernetesObject[]) =>
    objects
      .filter(({ kind }) => kind === 'PrometheusRule')
      .flatMap(({ spec }) => spec.groups as { name: string; rules: { alert: string }[] }[]);
  const documented = parse(read('docs/monitoring/alerts.yml')) as {
    groups: { name: string; rules: { alert: string }[] }[];
  };

  test('raises the alerts of docs/monitoring/alerts.yml', () => {
    expect(alertsOf(objectsOf('production'))).toEqual(documented.groups);
    expect(alertsOf(objectsOf('minimal'))).toEqual([]);
  });

  test('raises no alert about the absence of a listener that is turned off', () => {
    const objects = renderChart([
      ...exampleValues('production'),
      '--set',
      'processes.inbound-smtp.enabled=false,processes.submission-smtp.enabled=false',
    ]);
    const names = (groups: { rules: { alert: string }[] }[]) =>
      groups.flatMap(({ rules }) => rules.map(({ alert }) => alert));
    const omitted = names(documented.groups).filter((name) => !names(alertsOf(objects)).includes(name));
    expect(omitted).toEqual(['InboundSmtpAbsent', 'SubmissionSmtpAbsent']);
  });

  (promtoolObstacle ? test.skip : test)('has rules that Prometheus accepts', () => {
    const folder = mkdtempSync(join(tmpdir(), 'agent-email-rules-'));
    const file = join(folder, 'rules.json');
    writeFileSync(file, JSON.stringify({ groups: alertsOf(objectsOf('production')) }));
    const { ok, output } = runPromtool(['check', 'rules', file]);
    rmSync(folder, { recursive: true });
    expect({ ok, output }).toEqual({ ok: true, output: expect.stringContaining('SUCCESS') });
  });

  test('scrapes every process under the jobs of docs/monitoring/scrape.yml', () => {
    const { scrape_configs: jobs } = parse(read('docs/monitoring/scrape.yml')) as {
      scrape_configs: { job_name: string; dns_sd_configs: { names: string[] }[] }[];
    };
    const [monitor] = ofKind('production', 'PodMonitor');
    const endpoint = (port: string, job: string) => ({
      port,
      path: '/metrics',
      interval: '15s',
      authorization: { credentials: { name: 'agent-email', key: 'METRICS_TOKEN' } },
      relabelings: [{ action: 'replace', targetLabel: 'job', replacement: job }],
    });
    expect(monitor?.metadata.labels).toMatchObject({ release: 'prometheus' });
    expect(monitor?.spec).toEqual({
      selector: {
        matchLabels: { 'app.kubernetes.io/name': 'agent-email', 'app.kubernetes.io/instance': 'mail' },
      },
      podMetricsEndpoints: [endpoint('health', 'agent-email-workers'), endpoint('http', 'agent-email-api')],
    });
    for (const { job_name, dns_sd_configs } of jobs)
      for (const name of dns_sd_configs.flatMap(({ names }) => names)) {
        const container = containerOf(findObject('production', 'Deployment', name));
        const [port] = container.ports ?? [];
        const endpoints: { port: string; relabelings: object[] }[] = monitor?.spec.podMetricsEndpoints;
        expect(endpoints.find((candidate) => candidate.port === port?.name)?.relabelings).toEqual([
          { action: 'replace', targetLabel: 'job', replacement: job_name },
        ]);
        expect(container.env.find((variable) => variable.name === 'METRICS_TOKEN')?.valueFrom).toBeDefined();
      }
  });

  test('has the dashboard of docs/monitoring', () => {
    const [dashboard] = ofKind('production', 'ConfigMap');
    expect(JSON.parse(dashboard?.data?.['agent-email.json'] ?? '')).toEqual(
      JSON.parse(read('docs/monitoring/dashboard.json')),
    );
  });
});
