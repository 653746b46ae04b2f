import { readdirSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from '@jest/globals';
import { controlsOf } from '../../domain/workflow-runs/run-controls.ts';
import { SEARCH_ATTRIBUTES } from '../../platform/temporal.ts';
import * as workflows from '../../workflows/index.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const pages = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => join('docs', name)),
];
const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8');

test('every documented query by stage names the status: a closed run keeps its last stage', () => {
  const queries = pages.flatMap((page) =>
    [...textOf(page).matchAll(/`([^`]*\bStage ?= ?"[^`]*)`/g)].map(([, query = '']) => ({ page, query })),
  );
  expect(queries.length).toBeGreaterThan(1);
  expect(queries.filter(({ query }) => !query.includes('ExecutionStatus="'))).toEqual([]);
});

test('documented queries use search attributes that exist', () => {
  const known = new Set<string>([...SEARCH_ATTRIBUTES, 'ExecutionStatus', 'WorkflowType']);
  const names = pages.flatMap((page) =>
    [...textOf(page).matchAll(/`(?:[^`]* )?([A-Z][A-Za-z]+)="[^`]*`/g)].map(([, name = '']) => name),
  );
  expect(names.filter((name) => !known.has(name))).toEqual([]);
});

test('the pages on workflows and operations name every type of run', () => {
  const missing = ['docs/workflows.md', 'docs/operations.md'].flatMap((page) => {
    const text = textOf(page);
    return Object.keys(workflows)
      .filter((type) => !text.includes(`\`${type}\``))
      .map((type) => `${page}: ${type}`);
  });
  expect(missing).toEqual([]);
});

test('the runbook says what each signal of staff does', () => {
  const page = textOf('docs/runbook/stuck-work.md');
  const missing = Object.keys(workflows).flatMap((type) => {
    const { retry, cancel, cancelInstead } = controlsOf(type);
    const row = page
      .split('\n')
      .find((line) => line.startsWith('| ') && line.split('|')[1]?.includes(`\`${type}\``));
    return [retry, cancel]
      .flatMap((signal) =>
        signal !== undefined && !row?.includes(`\`${signal}\``) ? `${type}: ${signal}` : [],
      )
      .concat(cancelInstead !== undefined && !row?.includes('409') ? [`${type}: 409`] : []);
  });
  expect(missing).toEqual([]);
});
