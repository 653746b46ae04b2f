import { expect, test } from '@jest/globals';
import { sourceFiles } from './import-graph.ts';
import { hasDynamicTable, ownerOf, readTables, type TableWrite, writesIn } from './table-writers.ts';

/** Rooms that write a table of another room, and why no function of the owner does it for them. */
const EXCEPTIONS: Record<string, string> = {
  'domain/outbound writes messages':
    'A send creates its message and moves its status, in one transaction with attempts and events.',
  'domain/outbound writes message_recipients': 'The same for each recipient.',
  'domain/inbound writes messages':
    'The message, its thread and its attachments are created in one transaction.',
  'domain/inbound writes attachments': 'The same.',
  'domain/messages writes inbound_receipts':
    'A batch of retention deletes messages and their receipts in one statement.',
  'domain/stored-objects writes inbound_receipts':
    'A receipt is deleted in the transaction that forgets its bytes.',
  'workers writes events':
    'Migrations run before any room does; one resets event positions after a restore into another cluster.',
};

const files = sourceFiles(['api', 'domain', 'platform', 'activities', 'workers']);
const tables = readTables(files);
const foreignWrites = (writes: readonly TableWrite[], { definedIn }: typeof tables) =>
  writes
    .filter(({ file, table }) => ownerOf(file) !== ownerOf(definedIn.get(table) ?? ''))
    .map(({ file, table }) => `${ownerOf(file)} writes ${table}`);

test('only its own room writes a table, but for the named exceptions', () => {
  expect(tables.definedIn.size).toBeGreaterThan(40);
  const writes = files.flatMap((file) => writesIn(file, tables));
  expect(writes.length).toBeGreaterThan(80);
  expect([...new Set(foreignWrites(writes, tables))].sort()).toEqual(Object.keys(EXCEPTIONS).sort());
});

test('a statement names its table, so that the guard can read it', () => {
  const dynamic = files.filter((file) => hasDynamicTable(file));
  // Each room passes the name of its own table.
  expect(dynamic).toEqual(['platform/outbox/overdue-rows.ts']);
});

test('the guard reads SQL and calls of the entity manager', () => {
  const sources: Record<string, string> = {
    'domain/plans/plan.entity.ts': `export const PlanEntity = defineEntity({\n  name: 'Plan',\n  tableName: 'plans',`,
    'domain/plans/plan.service.ts': 'await em.nativeUpdate(PlanEntity, { id }, {});',
    'domain/billing/cancel.ts': 'await em.execute(sql`delete from "plans" where id = 1`);',
    'domain/billing/pay.ts': 'em.persist(em.create(\n  PlanEntity, {}));',
    'domain/billing/read.ts': 'await em.execute(`select id from plans for update`);',
  };
  const read = (file: string) => sources[file] ?? '';
  const planted = readTables(Object.keys(sources), read);
  const writes = Object.keys(sources).flatMap((file) => writesIn(file, planted, read));
  expect(writes.map(({ file }) => file)).toEqual([
    'domain/plans/plan.service.ts',
    'domain/billing/cancel.ts',
    'domain/billing/pay.ts',
  ]);
  expect(new Set(foreignWrites(writes, planted))).toEqual(new Set(['domain/billing writes plans']));
  const placeholder = '$' + '{name}';
  expect(hasDynamicTable('a.ts', () => `sql\`delete from ${placeholder} where id = 1\``)).toBe(true);
  expect(hasDynamicTable('a.ts', () => `sql\`delete from plans where id = ${placeholder}\``)).toBe(false);
});
