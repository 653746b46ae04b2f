import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { compileOnce } from '../../platform/database/compile-once.ts';
import { json } from '../../platform/database/json.ts';
import { useWorkerDatabase } from '../support/resources.ts';

const database = useWorkerDatabase();

describe('a statement that is compiled once', () => {
  test('is built once for each set of values that it may decide by', async () => {
    let built = 0;
    const select = compileOnce(
      (db, { id, name, isLoud }: { id: number; name?: string | null; isLoud: boolean }) => {
        built += 1;
        const greeting = sql<string>`concat(${isLoud ? sql`'HELLO '` : sql`'hello '`}, ${id}::int, ${name === undefined ? sql`'?'` : sql`${name}::text`})`;
        return db.selectNoFrom(greeting.as('greeting'));
      },
      ['isLoud'],
    );
    const run = async (values: { id: number; name?: string | null; isLoud: boolean }) =>
      (await select(database.db, values))[0]?.greeting;
    expect(await run({ id: 1, name: 'Ada', isLoud: false })).toBe('hello 1Ada');
    expect(await run({ id: 2, name: 'Bob', isLoud: false })).toBe('hello 2Bob');
    expect(await run({ id: 3, name: null, isLoud: false })).toBe('hello 3');
    expect(built).toBe(1);
    expect(await run({ id: 4, name: 'Ada', isLoud: true })).toBe('HELLO 4Ada');
    expect(await run({ id: 5, isLoud: false })).toBe('hello 5?');
    expect(built).toBe(3);
  });

  test('keeps the values of concurrent runs apart', async () => {
    const select = compileOnce((db, { value }: { value: number }) =>
      db.selectNoFrom(sql<number>`${value}::int`.as('value')),
    );
    const values = Array.from({ length: 50 }, (_, index) => index);
    const found = await Promise.all(values.map((value) => select(database.db, { value })));
    expect(found.map(([row]) => row?.value)).toEqual(values);
  });

  test.each([[], ['a'], 'a', { a: [] }, null].map((value) => ({ value })))(
    'binds $value as JSON',
    async ({ value }) => {
      const select = compileOnce((db, values: { value: unknown }) =>
        db.selectNoFrom([
          sql<unknown>`${json(values.value)}`.as('value'),
          sql<boolean>`${json(values.value)} is null`.as('isNull'),
        ]),
      );
      expect(await select(database.db, { value })).toEqual([{ value, isNull: value === null }]);
    },
  );

  test('cannot be built from a value that is not named', async () => {
    const byText = compileOnce((db, { name }: { name: string }) =>
      db.selectNoFrom(sql<string>`${`%${name}%`}::text`.as('name')),
    );
    const byJson = compileOnce((db, { name }: { name: string }) =>
      db.selectNoFrom(sql<string>`${JSON.stringify({ name })}::text`.as('name')),
    );
    const reason = 'the value name can only be bound';
    await expect(byText(database.db, { name: 'Ada' })).rejects.toThrow(reason);
    await expect(byJson(database.db, { name: 'Ada' })).rejects.toThrow(reason);
  });

  test.each<[string, (data: { name?: string; size?: number }) => boolean]>([
    ['has', (data) => 'size' in data],
    ['reads', (data) => data.size === 1],
  ])('cannot be built from what an object %s', async (_does, decide) => {
    const select = compileOnce((db, { data }: { data: { name?: string; size?: number } }) =>
      db.selectNoFrom(sql<number>`${decide(data) ? 1 : 2}::int`.as('value')),
    );
    await expect(select(database.db, { data: { size: 1 } })).rejects.toThrow(
      'the value data can only be bound',
    );
  });

  test('keeps at most 64 shapes, and still runs in others', async () => {
    let built = 0;
    const select = compileOnce(
      (db, { size }: { size: number }) => {
        built += 1;
        return db.selectNoFrom(sql<number>`${size}::int`.as('size'));
      },
      ['size'],
    );
    for (const _ of [1, 2])
      for (let size = 0; size < 70; size += 1)
        expect(await select(database.db, { size })).toEqual([{ size }]);
    expect(built).toBe(70 + 6);
  });
});
