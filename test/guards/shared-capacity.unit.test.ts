import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ConfigSchema } from '../../platform/config.ts';
import { listSourceFiles } from './import-graph.ts';

const ROOT = resolve(import.meta.dirname, '..', '..');
const FOLDERS = ['api', 'domain', 'platform', 'workflows', 'activities', 'workers'];

/** Constants that limit what happens at the same time, waits, or is locked together. */
const LIMIT =
  /^(?:export )?const (MAX_(?:CONCURRENT|WAITING|OPEN|SLOT|SHARE|ROWS)_?\w*|MAX_(?:\w+_)?PER_(?:ORGANIZATION|CREDENTIAL|NETWORK|ADDRESS|ENDPOINT|INBOX|QUEUE|PROCESS|RUN|HOUR|MERGE)|(?:RESERVED|SHARED)_(?:BYTES|CONNECTIONS)|\w*BATCH(?:ES|_SIZE)) = (\S+)/gm;
const SETTING = /CONCURRENCY|POOL_SIZE|_PROCESSES$|MAX_CONNECTIONS|STREAMS_PER|RATE_LIMIT/;

/** Limits that tenants do not share, by file and name. */
const NOT_SHARED: Record<string, string> = {
  'domain/attachments/attachment.service.ts MAX_CONCURRENT_PUTS': 'of one request',
  'domain/exports/archive-files.ts MAX_CONCURRENT_READS': 'of one export',
  'domain/outbound/restored-sends.ts MAX_CONCURRENT_CHECKS': 'of the operator’s restore',
  'domain/domains/verification.service.ts MAX_CONCURRENT_RECHECKS':
    'of one daily run, over all domains in order',
  'domain/billing/meter-reporting.service.ts MAX_CONCURRENT_REPORTS':
    'of one run, over all organizations in order',
  'domain/workflow-runs/list-runs.ts MAX_CONCURRENT_LOOKUPS': 'of one request by staff',
  'activities/maintenance.activities.ts MAX_CONCURRENT_LOOKUPS': 'of the reconciler',
  'domain/impersonation/impersonation.service.ts MAX_OPEN': 'a staff member’s own',
  'domain/invitations/invitation.service.ts MAX_OPEN': 'an organization’s own',
  'domain/sso/sso-setup-link.service.ts MAX_OPEN': 'an organization’s own',
  'domain/inbound/unattributed-reports.ts MAX_PER_HOUR': 'an organization’s own',
  'domain/refusals/store-refusals.ts MAX_ROWS_PER_HOUR': 'an organization’s own',
  'domain/people/account.service.ts MAX_CHANGES_PER_HOUR': 'a person’s own',
  'domain/people/deleted-account.ts MAX_EMAILS_PER_HOUR': 'a person’s own',
  'domain/people/password.service.ts MAX_RESETS_PER_HOUR': 'a person’s own',
  'domain/people/sign-up.service.ts MAX_EMAILS_PER_HOUR': 'an address’s own',
  'workflows/deletions/purge.contract.ts MAX_SLICES_PER_RUN': 'of one run',
  'workflows/retention/apply-retention.contract.ts MAX_SLICES_PER_RUN': 'of one run',
  'domain/sso/sso-metadata.ts MAX_PER_RUN': 'of a sweep, oldest first',
  'domain/metrics/metric-deltas.ts MAX_BATCHES': 'of a sweep',
  'domain/requests/delete-requests.ts MAX_BATCHES': 'of a sweep',
  'domain/usage/apply-usage-deltas.ts MAX_BATCHES': 'of a sweep',
  'domain/stored-objects/sweep-objects.ts MAX_BATCHES': 'of a sweep',
  'domain/events/purge-events.ts MAX_BATCHES': 'of a sweep',
  'domain/attachments/text/file-reader.ts MAX_JOBS_PER_PROCESS': 'when a process is replaced',
  'domain/mime/parser/pool.ts MAX_JOBS_PER_PROCESS': 'when a process is replaced',
  'domain/mime/converter/pool.ts MAX_JOBS_PER_PROCESS': 'when a process is replaced',
  'platform/logger.ts MAX_WAITING_BYTES': 'of the output of one process',
  'platform/storage.ts MAX_CONCURRENT_PARTS': 'of one upload',
  'platform/storage.ts MAX_CONCURRENT_DELETES': 'of one call',
  'workers/backup/objects.ts MAX_CONCURRENT_COPIES': 'of the operator’s backup',
};
const MAX_BATCH_ROWS = 5_000;

interface Capacity {
  name: string;
  /** Constants and settings. */
  limits: string[];
  cells: string[];
}

function readTable(): Capacity[] {
  const [, section = ''] = readFileSync(resolve(ROOT, 'docs/security.md'), 'utf8').split(
    '## Shared capacity\n',
  );
  const [table = ''] = section.split('\n## ');
  const rows = table.split('\n').filter((line) => /^\| (?!capacity)/.test(line));
  return rows.map((row) => {
    const cells = row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim());
    const [first = ''] = cells;
    const limits = [...first.matchAll(/`([A-Z_]+)`/g)].map(([, name = '']) => name);
    return { name: first.replace(/ \(.*$/, ''), limits, cells };
  });
}

const table = readTable();
const documented = new Set(table.flatMap(({ limits }) => limits));
const sources = listSourceFiles(FOLDERS).map((file) => ({
  file,
  source: readFileSync(resolve(ROOT, file), 'utf8'),
}));
const limits = sources.flatMap(({ file, source }) =>
  [...source.matchAll(LIMIT)].map(([, name = '', value = '']) => ({ file, name, value })),
);

describe('the table of shared capacity', () => {
  test('has four full columns', () => {
    expect(table.length).toBeGreaterThan(20);
    for (const { name, cells } of table)
      expect({ name, full: cells.filter(Boolean).length }).toEqual({ name, full: 4 });
  });

  test('has each fair share of the code', () => {
    const named = sources.flatMap(({ source }) => [
      ...[...source.matchAll(/create(?:FairShare|ChildPool)\(\{\s*name: '([^']+)'/g)].map(
        ([, name = '']) => name,
      ),
    ]);
    expect(named.length).toBeGreaterThan(12);
    const rows = table.map(({ name }) => name);
    expect(named.filter((name) => !rows.includes(name))).toEqual([]);
    const created = sources.flatMap(({ source }) => [
      ...source.matchAll(/[^n] create(?:FairShare|ChildPool)\(/g),
    ]);
    // The pool of children passes its own name on.
    expect(created.length).toBeLessThanOrEqual(named.length + 1);
  });

  test('has each limit of the code, unless tenants do not share it', () => {
    expect(limits.length).toBeGreaterThan(60);
    const missing = limits.filter(
      ({ file, name }) =>
        !name.endsWith('BATCH_SIZE') && !documented.has(name) && !(`${file} ${name}` in NOT_SHARED),
    );
    expect(missing.map(({ file, name }) => `${file} ${name}`)).toEqual([]);
  });

  test('has each setting that limits', () => {
    const settings = Object.keys(ConfigSchema.properties).filter((name) => SETTING.test(name));
    expect(settings.length).toBeGreaterThan(10);
    expect(settings.filter((name) => !documented.has(name))).toEqual([]);
  });

  test('names limits that exist, and so do the exceptions', () => {
    const known = new Set([...sources.flatMap(({ source }) => source.match(/\b[A-Z][A-Z_]+\b/g) ?? [])]);
    expect([...documented].filter((name) => !known.has(name))).toEqual([]);
    const found = new Set(limits.map(({ file, name }) => `${file} ${name}`));
    expect(Object.keys(NOT_SHARED).filter((name) => !found.has(name))).toEqual([]);
  });
});

test('no batch locks more rows than the table says', () => {
  const batches = limits.filter(({ name }) => name.endsWith('BATCH_SIZE') || name.startsWith('MAX_ROWS'));
  expect(batches.length).toBeGreaterThan(40);
  const tooLarge = batches.filter(({ value }) => !(Number(value.replace(/[_;]/g, '')) <= MAX_BATCH_ROWS));
  expect(tooLarge).toEqual([]);
});

test('only fair shares limit what tenants share', () => {
  const others = sources.filter(({ source }) =>
    /\bclass \w*Semaphore\b|\bcreateSemaphore\(|p-limit/.test(source),
  );
  expect(others.map(({ file }) => file)).toEqual([]);
});
