import { beforeAll, describe, expect, test } from '@jest/globals';
import { type EntityMetadata, sql, wrap } from '@mikro-orm/core';
import { entities } from '../../domain/entities.ts';
import { MessageEntity } from '../../domain/messages/message.entity.ts';
import { findRow, findRows } from '../../platform/database/find-rows.ts';
import type { RowFilter } from '../../platform/database/row-filter.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';
import { createRichOrganization } from '../support/rich-organization.ts';

const api = useApiDatabase();
const worker = useWorkerDatabase();
let organizationId: string;

beforeAll(async () => {
  ({ organizationId } = await createRichOrganization(createMemoryStorage(new Map())));
});

const metadataOf = (entity: (typeof entities)[number]) =>
  worker.orm.getMetadata().get(entity as never) as unknown as EntityMetadata<{ organizationId: string }>;

test('a row has the values that the entity has, for every table of an organization', async () => {
  let compared = 0;
  await worker.autocommit(async (em) => {
    for (const entity of entities) {
      const meta = metadataOf(entity);
      if (!('organizationId' in meta.properties)) continue;
      const populate = meta.props.filter(({ lazy }) => lazy).map(({ name }) => name) as never[];
      const rows = await findRows(em, meta.class, { where: { organizationId }, populate });
      const found = await em.find(meta.class, { organizationId }, { populate });
      const byText = (a: object, b: object) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1);
      const plain = found.map((each) => wrap(each).toPOJO() as object);
      const expected = JSON.parse(JSON.stringify(plain.sort(byText)));
      expect([meta.className, JSON.parse(JSON.stringify([...rows].sort(byText)))]).toEqual([
        meta.className,
        expected,
      ]);
      compared += rows.length;
    }
  });
  expect(compared).toBeGreaterThan(20);
});

describe('a filter', () => {
  const idsBy = async (where: RowFilter) => {
    const rows = await api.read({ organizationId }, (reader) => findRows(reader, MessageEntity, { where }));
    return rows.map(({ id }) => id).sort();
  };

  test.each<[string, (row: { id: string; inboxId: string; createdAt: Date }) => object]>([
    ['a value', ({ id }) => ({ id })],
    ['a list', ({ id }) => ({ id: { $in: [id, 'msg_other'] } })],
    ['an empty list', () => ({ id: { $in: [] } })],
    [
      'a range of times',
      ({ createdAt }) => ({ createdAt: { $gte: createdAt, $lt: new Date('2200-01-01') } }),
    ],
    ['null', () => ({ deliveredAt: null })],
    ['alternatives', ({ id, inboxId }) => ({ inboxId, $or: [{ id }, { direction: 'outbound' }] })],
    ['a negation', () => ({ $not: { labels: { $overlap: ['spam', `it's "quoted"`] } } })],
    ['a subset of a list', () => ({ labels: { $contained: ['spam', 'unauthenticated', 'seen'] } })],
    ['part of a text', () => ({ $and: [{ subject: { $ilike: '%e%' } }, { subject: { $ilike: '%\\?%' } }] })],
  ])('of %s finds what the ORM finds', async (_name, build) => {
    const sample = await api.read({ organizationId }, (reader) =>
      findRow(reader, MessageEntity, { where: {}, orderBy: { id: 'desc' } }),
    );
    const where = build(sample as NonNullable<typeof sample>);
    const expected = await worker.autocommit((em) => em.find(MessageEntity, { ...where, organizationId }));
    expect(await idsBy(where)).toEqual(expected.map(({ id }) => id).sort());
  });

  test.each([{ subject: { $re: '.*' } }, { id: undefined }, { inbox: { email: 'a@b.example' } }])(
    'that it does not know, %j, fails',
    async (where) => {
      await expect(idsBy(where)).rejects.toThrow();
    },
  );
});

describe('a read', () => {
  test('sees the rows of its organization only, also on a reused connection', async () => {
    const count = (of: string) =>
      api.read({ organizationId: of }, (reader) => findRows(reader, MessageEntity, { where: {} }));
    expect((await count(organizationId)).length).toBeGreaterThan(0);
    expect(await count(`org_'; select 1; --`)).toEqual([]);
    expect(await api.query(sql`select id from messages`)).toEqual([]);
  });

  test('changes nothing', async () => {
    const change = api.read({ organizationId }, (reader) =>
      reader.execute(sql`update messages set subject = 'changed' where true`),
    );
    await expect(change).rejects.toMatchObject({ code: '25006' });
  });

  test('sees the changes of the transaction that it joins', async () => {
    const seen = await api.transaction({ organizationId }, async (transaction) => {
      const message = await transaction.em.findOneOrFail(MessageEntity, { organizationId });
      message.subject = 'changed';
      return api.read({ organizationId, transaction }, (reader) =>
        findRow(reader, MessageEntity, { where: { id: message.id } }),
      );
    });
    expect(seen?.subject).toBe('changed');
  });

  test('an error names no value', async () => {
    const failing = api.read({ organizationId }, (reader) =>
      reader.execute(sql`select ${'secret words'}::int as "value"`),
    );
    await expect(failing).rejects.toThrow(expect.not.stringContaining('secret') as never);
  });
});
