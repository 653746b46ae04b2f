import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { findPromtoolObstacle, runPromtool } from '../support/promtool.ts';

const RULES = resolve(import.meta.dirname, '../../docs/monitoring/alerts.yml');
const SCRAPE = resolve(import.meta.dirname, '../../docs/monitoring/scrape.yml');
const TESTS = resolve(import.meta.dirname, 'alerts.promtool.yml');
const DASHBOARD = resolve(import.meta.dirname, '../../docs/monitoring/dashboard.json');

const obstacle = findPromtoolObstacle();
if (obstacle) process.stderr.write(`The tests with a real Prometheus are skipped: ${obstacle}.\n`);

(obstacle ? describe.skip : describe)('Prometheus', () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-email-promtool-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('accepts the rules and the queries of the dashboard', () => {
    const dashboard = JSON.parse(readFileSync(DASHBOARD, 'utf8')) as {
      panels: { targets?: { expr: string }[] }[];
    };
    const queries = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
    expect(queries.length).toBeGreaterThan(15);
    const file = join(folder, 'dashboard.yml');
    // A recording rule takes any query; variables of Grafana become values.
    const rules = queries.map((expr, index) => ({
      record: `panel:${index}`,
      expr: expr.replaceAll('$__rate_interval', '5m').replace(/\$\w+/g, '.*'),
    }));
    writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules }] }));
    for (const rulesFile of [RULES, file]) {
      const { ok, output } = runPromtool(['check', 'rules', rulesFile]);
      expect({ ok, output }).toEqual({ ok: true, output: expect.stringContaining('SUCCESS') });
    }
  });

  test('accepts the scrape configuration', () => {
    const file = join(folder, 'prometheus.yml');
    writeFileSync(file, readFileSync(SCRAPE, 'utf8').replace('alerts.yml', RULES));
    writeFileSync(join(folder, 'metrics-token'), 'x');
    const { ok, output } = runPromtool(['check', 'config', file]);
    expect({ ok, output }).toEqual({ ok: true, output: expect.stringContaining('SUCCESS') });
  });

  test('raises the alerts when they are due, and not before', () => {
    const { ok, output } = runPromtool(['test', 'rules', TESTS]);
    expect({ ok, output }).toEqual({ ok: true, output: expect.stringContaining('SUCCESS') });
  });
});

test('the alerts about absence, sweeps, refusals and outcomes have a unit test', () => {
  const { tests } = parse(readFileSync(TESTS, 'utf8')) as {
    tests: { alert_rule_test: { alertname: string; exp_alerts: object[] }[] }[];
  };
  const outcomes = tests.flatMap(({ alert_rule_test }) => alert_rule_test);
  const tested = (fires: boolean) =>
    new Set(
      outcomes.filter(({ exp_alerts }) => exp_alerts.length > 0 === fires).map(({ alertname }) => alertname),
    );
  const rules = (
    parse(readFileSync(RULES, 'utf8')) as { groups: { rules: { alert: string; expr: string }[] }[] }
  ).groups
    .flatMap((group) => group.rules)
    .filter(({ expr }) => /absent\(agent|_total|last_sweep|schedule_active|dependency_up|offset/.test(expr))
    .filter(({ expr }) => !/temporal_|backlog_failures/.test(expr))
    .map(({ alert }) => alert);
  expect(rules.length).toBeGreaterThan(18);
  for (const alert of rules)
    expect({ alert, fires: tested(true).has(alert) }).toEqual({ alert, fires: true });
  expect(tested(false).size).toBeGreaterThan(20);
});
