import { expect, test } from '@jest/globals';
import { listSourceFiles } from './import-graph.ts';
import { findTableWrites, hasDynamicTable, ownerOf, readTables, type TableWrite } from './table-writers.ts';

/** Rooms that write to another room's table, and why they do not call a function of its owner. */
const EXCEPTIONS: Record<string, string> = {
  'domain/outbound writes messages':
    'A send creates its message and moves its status, in one transaction with attempts and events.',
  'domain/outbound writes message_recipients': 'The same for each recipient.',
  'domain/inbound writes messages':
    'The message, its thread and its attachments are created in one transaction.',
  'domain/inbound writes attachments': 'The same.',
  'domain/messages writes inbound_receipts':
    'A retention batch deletes messages and their receipts in one statement.',
  'domain/stored-objects writes inbound_receipts':
    'A receipt is deleted in the transaction that releases its object.',
  'domain/sessions writes connections':
    'Whatever ends the sessions of a person ends their connections, and the room of connections depends on sessions.',
  'workers writes events':
    'The migration command resets event positions after a restore into another cluster.',
};

const files = listSourceFiles(['api', 'web', 'domain', 'platform', 'activities', 'workers']);
const tables = readTables(files);
const foreignWrites = (writes: readonly TableWrite[], { definedIn }: typeof tables) =>
  writes
    .filter(({ file, table }) => ownerOf(file) !== ownerOf(definedIn.get(table) ?? ''))
    .map(({ file, table }) => `${ownerOf(file)} writes ${table}`);

test('only the owning room writes to a table, apart from the listed exceptions', () => {
  expect(tables.definedIn.size).toBeGreaterThan(40);
  const writes = files.flatMap((file) => findTableWrites(file, tables));
  expect(writes.length).toBeGreaterThan(80);
  expect([...new Set(foreignWrites(writes, tables))].sort()).toEqual(Object.keys(EXCEPTIONS).sort());
});

test('statements name their tables literally, which the guard depends on', () => {
  const dynamic = files.filter((file) => hasDynamicTable(file));
  // The purge of an organization deletes the rows of every room, and new keys replace the encrypted values of every room;
  // each room passes its own table to the others.
  expect(dynamic).toEqual(['domain/deletions/purge-tables.ts', 'platform/installation/reencrypt.ts']);
});

test('the guard finds writes in SQL and in typed statements', () => {
  const sources: Record<string, string> = {
    'domain/plans/plan.entity.ts': `export const PlanEntity = defineEntity({\n  name: 'Plan',\n  tableName: 'plans',`,
    'domain/plans/plan.service.ts': "await db.updateTable('plans').set({}).execute();",
    'domain/billing/cancel.ts': 'await sql`delete from "plans" where id = 1`.execute(db);',
    'domain/billing/pay.ts': "db.insertInto(\n  'plans').values({});",
    'domain/billing/raise.ts': "await db\n  .updateTable('plans as p')\n  .set({});",
    'domain/billing/read.ts': "db.selectFrom('plans').select('id').forUpdate();",
  };
  const read = (file: string) => sources[file] ?? '';
  const sampleTables = readTables(Object.keys(sources), read);
  const writes = Object.keys(sources).flatMap((file) => findTableWrites(file, sampleTables, read));
  expect(writes.map(({ file }) => file)).toEqual([
    'domain/plans/plan.service.ts',
    'domain/billing/cancel.ts',
    'domain/billing/pay.ts',
    'domain/billing/raise.ts',
  ]);
  expect(new Set(foreignWrites(writes, sampleTables))).toEqual(new Set(['domain/billing writes plans']));
  const placeholder = '$' + '{name}';
  expect(hasDynamicTable('a.ts', () => `sql\`delete from ${placeholder} where id = 1\``)).toBe(true);
  expect(hasDynamicTable('a.ts', () => 'db.deleteFrom(table)')).toBe(true);
  expect(hasDynamicTable('a.ts', () => "db.deleteFrom('plans')")).toBe(false);
  expect(hasDynamicTable('a.ts', () => `sql\`delete from plans where id = ${placeholder}\``)).toBe(false);
});
