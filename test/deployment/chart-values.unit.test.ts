import { existsSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import {
  CHART,
  readValuesSchema,
  renderSettings,
  SECRET_SETTINGS,
  TEMPLATE_SETTINGS,
} from '../../dev/chart-schema.ts';
import { ConfigSchema } from '../../platform/config.ts';
import { findHelmObstacle, lintChart, templateChart } from '../support/helm.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const examples = readdirSync(join(CHART, 'examples')).map((file) => join(CHART, 'examples', file));

describe('the chart', () => {
  test('accepts every setting of the processes (npx node dev/chart-schema.ts updates it)', () => {
    // As a setting, from the Secret, or from a template.
    expect(readValuesSchema().definitions.settings.properties).toEqual(renderSettings());
    const names = [...Object.keys(renderSettings()), ...SECRET_SETTINGS, ...TEMPLATE_SETTINGS];
    expect(names.toSorted()).toEqual(Object.keys(ConfigSchema.properties).toSorted());
  });

  test('takes everything that is named like a secret from the Secret', () => {
    const secret = /KEY$|SECRET$|PASSWORD$|TOKEN$|DATABASE_URL$|HEADERS$/;
    expect(Object.keys(renderSettings()).filter((name) => secret.test(name))).toEqual([]);
  });

  test('lists the keys of the Secret in its values and on the page about Kubernetes', () => {
    const page = read('docs/kubernetes.md');
    const values = read('charts/agent-email/values.yaml');
    for (const name of SECRET_SETTINGS) {
      expect(values).toContain(name);
      expect(page).toContain(`\`${name}\``);
    }
  });

  test('has the version of the service', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(parse(read('charts/agent-email/Chart.yaml'))).toMatchObject({ appVersion: version });
  });

  test.each(['alerts.yml', 'dashboard.json'])(
    'has no copy of docs/monitoring/%s, but the file itself',
    (file) => {
      expect(realpathSync(join(CHART, 'files', file))).toBe(
        realpathSync(join(ROOT, 'docs/monitoring', file)),
      );
    },
  );

  test('names commands and files that exist', () => {
    const texts = [
      read('docs/kubernetes.md'),
      read('charts/agent-email/templates/NOTES.txt'),
      read('charts/agent-email/values.yaml'),
    ].join('\n');
    const scripts = [...texts.matchAll(/node ((?:workers|api|dev)\/[\w./-]+\.ts)/g)].map(
      ([, file = '']) => file,
    );
    const files = [...texts.matchAll(/(?:charts\/agent-email|docs)\/[\w./-]+\w/g)].map(([file]) => file);
    expect(scripts.length).toBeGreaterThan(3);
    expect(files.length).toBeGreaterThan(3);
    expect([...scripts, ...files].filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });
});

const obstacle = findHelmObstacle();
if (obstacle) process.stderr.write(`The tests of the chart with Helm are skipped: ${obstacle}.\n`);

(obstacle ? describe.skip : describe)('Helm', () => {
  const MINIMAL = ['--values', join(CHART, 'examples/minimal.yaml')];

  test.each([
    ['no values', []],
    ...examples.map((file) => [file.slice(CHART.length + 1), ['--values', file]]),
  ] as [string, string[]][])('accepts the chart with %s', (_name, values) => {
    const { ok, output, errors } = lintChart(values);
    expect({ ok, output, errors }).toMatchObject({
      ok: true,
      output: expect.stringContaining('0 chart(s) failed'),
    });
    expect(output).not.toMatch(/\[(WARNING|ERROR)\]/);
  });

  test('names everything that is missing in one message', () => {
    const { ok, errors } = templateChart([]);
    expect(ok).toBe(false);
    for (const name of [
      'image.repository',
      'existingSecret',
      'settings.MAIL_DOMAIN',
      'settings.PUBLIC_URL',
      'settings.TEMPORAL_ADDRESS',
      'settings.SMTP_RELAY_HOST',
    ])
      expect(errors).toContain(`${name} is required: `);
  });

  test.each([
    [
      'submission without a certificate',
      'processes.submission-smtp.enabled=true',
      'tls.submissionSmtpSecret is required',
    ],
    [
      'a DKIM key without its selector',
      'dkim.existingSecret=dkim',
      'settings.DKIM_SHARED_SELECTOR is required',
    ],
    [
      'a DKIM selector without its key',
      'settings.DKIM_SHARED_SELECTOR=s1',
      'dkim.existingSecret is required',
    ],
    [
      'billing without prices',
      'settings.BILLING_ENABLED=true',
      'settings.STRIPE_PRICES_DEVELOPER, or the prices of another tier, are required',
    ],
    [
      'an Ingress whose clients would all have one address',
      'ingress.enabled=true',
      'settings.TRUST_PROXY is required',
    ],
    ['an unknown value', 'processes.api.replcas=3', 'replcas'],
    ['an unknown setting', 'settings.MAIL_DOMIAN=example.org', 'MAIL_DOMIAN'],
    ['a setting beyond its limits', 'settings.APPROVAL_DAYS=91', 'APPROVAL_DAYS'],
    ['a secret among the settings', 'settings.ENCRYPTION_KEY=c2VjcmV0', 'ENCRYPTION_KEY'],
    ['a setting that the chart sets', 'settings.API_PORT=8080', 'API_PORT'],
    ['an older Kubernetes', 'podLabels.x=y', 'kubeVersion', ['--kube-version', '1.26.0']],
  ] as [string, string, string, string[]?][])('refuses %s', (_name, value, message, more = []) => {
    expect(templateChart([...MINIMAL, ...more]).ok).toBe(more.length === 0);
    const { ok, errors } = templateChart([...MINIMAL, '--set', value, ...more]);
    expect(ok).toBe(false);
    expect(errors).toContain(message);
  });
});
