import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { parse } from 'yaml';
import { BACKLOG_KINDS } from '../../domain/monitoring/backlog.ts';
import { ourServices, readComposeFile } from './compose-file.ts';

const FOLDER = resolve(import.meta.dirname, '../../docs/monitoring');
const read = (file: string) => readFileSync(join(FOLDER, file), 'utf8');

interface Rules {
  groups: { name: string; rules: { alert: string; expr: string; labels: object; annotations: object }[] }[];
}
const rules = (parse(read('alerts.yml')) as Rules).groups.flatMap((group) => group.rules);
const dashboard = JSON.parse(read('dashboard.json')) as {
  panels: { type: string; title: string; gridPos: { x: number; w: number }; targets?: { expr: string }[] }[];
};
const expressions = [
  ...rules.map(({ expr }) => expr),
  ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
];

test('every alert has an expression, a severity, a summary and a unique name', () => {
  expect(rules.length).toBeGreaterThan(15);
  for (const rule of rules)
    expect(rule).toMatchObject({
      alert: expect.stringMatching(/^[A-Z]\w+$/),
      expr: expect.stringMatching(/\S/),
      labels: { severity: expect.stringMatching(/^(critical|warning)$/) },
      annotations: { summary: expect.stringMatching(/\S/) },
    });
  expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
});

test('the runbook_url of every alert leads to a heading that exists, and names the alert below it', () => {
  for (const { alert, annotations } of rules) {
    const { runbook_url: url = '' } = annotations as { runbook_url?: string };
    const [page = '', anchor = ''] = url.split('#');
    const text = readFileSync(resolve(FOLDER, '../..', page), 'utf8');
    const section = text.split(/^(?=## )/m).find((part) => anchorOf(part.split('\n', 1)[0] ?? '') === anchor);
    expect({ alert, url, isNamed: section?.includes(`\`${alert}\``) }).toEqual({ alert, url, isNamed: true });
  }
});

test('every alert that the runbook names exists', () => {
  const page = readFileSync(join(FOLDER, '../runbook/alerts.md'), 'utf8');
  const named = [...page.matchAll(/`([A-Z][a-z]+[A-Z]\w+)`/g)].map(([, name]) => name);
  const known = new Set<string | undefined>(rules.map(({ alert }) => alert));
  expect(named.length).toBeGreaterThan(40);
  expect(named.filter((name) => !known.has(name))).toEqual([]);
});

/** As GitHub makes it from a heading. */
const anchorOf = (heading: string): string =>
  heading
    .replace(/^#+ /, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

test('every panel has a query and fits on the page', () => {
  const panels = dashboard.panels.filter(({ type }) => type !== 'row');
  expect(panels.length).toBeGreaterThan(15);
  for (const { targets, gridPos } of panels) {
    expect(targets?.length).toBeGreaterThan(0);
    expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
  }
});

test('parentheses, braces and brackets are balanced', () => {
  const count = (text: string, character: string) => text.split(character).length;
  for (const expression of expressions)
    for (const [open = '', close = ''] of ['()', '{}', '[]'])
      expect({ expression, count: count(expression, open) }).toEqual({
        expression,
        count: count(expression, close),
      });
});

test('queries use only existing backlog kinds, and the page explains each kind', () => {
  const asked = expressions.flatMap((expression) =>
    [...expression.matchAll(/kind=(~?)"([^"]+)"/g)].map(([, isPattern, value = '']) =>
      isPattern ? new RegExp(`^(?:${value})$`) : new RegExp(`^${value}$`),
    ),
  );
  expect(asked.length).toBeGreaterThan(10);
  for (const pattern of asked) expect(BACKLOG_KINDS.filter((kind) => pattern.test(kind))).not.toEqual([]);
  const page = readFileSync(join(FOLDER, '../monitoring.md'), 'utf8');
  for (const kind of BACKLOG_KINDS) expect(page).toContain(`\`${kind}\``);
});

describe('scrape.yml', () => {
  const { scrape_configs: jobs } = parse(read('scrape.yml')) as {
    scrape_configs: { dns_sd_configs: { names: string[]; port: number }[] }[];
  };
  const targets = jobs.flatMap(({ dns_sd_configs }) => dns_sd_configs);

  test('scrapes every long-running process of the compose file at its port', () => {
    for (const [name, { command, environment = {}, restart }] of ourServices(readComposeFile())) {
      if (restart?.startsWith('on-failure')) continue;
      const port = command?.includes('api/server.ts') ? environment.API_PORT : environment.WORKER_HEALTH_PORT;
      expect(targets).toContainEqual({
        names: expect.arrayContaining([name]),
        type: 'A',
        port: Number(port),
      });
    }
  });
});
