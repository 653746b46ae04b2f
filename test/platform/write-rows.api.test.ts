import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import { sql, UniqueConstraintViolationException } from '@mikro-orm/core';
import { DraftEntity } from '../../domain/drafts/draft.entity.ts';
import { type Inbox, InboxEntity } from '../../domain/inboxes/inbox.entity.ts';
import type { Transaction } from '../../platform/database/database.ts';
import { findRow } from '../../platform/database/find-rows.ts';
import { insertRow, updateRow } from '../../platform/database/write-rows.ts';
import { newId } from '../../platform/ids.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';

const api = useApiDatabase();
const worker = useWorkerDatabase();
let inbox: Inbox;
let foreign: Inbox;

beforeAll(async () => {
  inbox = await createInbox(worker, await createOrganization(worker));
  foreign = await createInbox(worker, await createOrganization(worker));
});

const ownerOf = ({ id, organizationId, environmentId }: Inbox) => ({
  inboxId: id,
  organizationId,
  environmentId,
});
const draftOf = (owner: Inbox) => ({
  id: newId('draft'),
  ...ownerOf(owner),
  to: [{ email: 'ada@people.example', name: `Ada "the" O'Brien \\ {1}` }],
  cc: [],
  bcc: [],
  replyTo: [],
  headers: { 'X-Note': `it's "quoted"` },
  labels: ['a,b', '"quoted"', 'back\\slash', ''],
  subject: '$1 ? ?? \\? – ☃',
});
const write = <T>(work: (transaction: Transaction) => Promise<T>): Promise<T> =>
  api.transaction({ organizationId: inbox.organizationId }, work);
const find = (id: string) =>
  worker.systemTransaction(({ em }) => em.findOne(DraftEntity, { id }, { disableIdentityMap: true }));

describe('an inserted row', () => {
  test('is returned as stored, with defaults and times, and as an entity reads it', async () => {
    const values = draftOf(inbox);
    const row = await write((transaction) => insertRow(transaction, DraftEntity, values));
    expect(row).toMatchObject({ ...values, sendStatus: 'draft', version: 1, sendAt: null, textBody: null });
    expect(row.createdAt).toEqual(row.updatedAt);
    const { approvalHistory: _lazy, ...entity } = { ...(await find(row.id)) };
    expect(entity).toEqual(row);
  });

  test('violates constraints with the errors of the ORM', async () => {
    const values = draftOf(inbox);
    await write((transaction) => insertRow(transaction, DraftEntity, values));
    await expect(write((transaction) => insertRow(transaction, DraftEntity, values))).rejects.toBeInstanceOf(
      UniqueConstraintViolationException,
    );
  });

  test('follows entities of the same transaction that it refers to', async () => {
    const row = await worker.systemTransaction(async (transaction) => {
      const id = newId('inbox');
      const created = transaction.em.create(InboxEntity, {
        ...inbox,
        id,
        email: `${id}@mail.test`,
        clientId: null,
      });
      transaction.em.persist(created);
      return insertRow(transaction, DraftEntity, draftOf(created));
    });
    expect(await find(row.id)).not.toBeNull();
  });
});

describe('a changed row', () => {
  test('has the changes and a new time, and everything else as before', async () => {
    const sendAt = new Date('2031-01-02T03:04:05.678Z');
    const before = await write((transaction) => insertRow(transaction, DraftEntity, draftOf(inbox)));
    const changes = { subject: null, labels: [], headers: {}, sendAt, version: 2, unsubscribe: true };
    const after = await write((transaction) => updateRow(transaction, DraftEntity, before.id, changes));
    const { updatedAt, ...others } = after;
    expect(others).toEqual({ ...before, ...changes, updatedAt: undefined });
    expect(updatedAt.getTime()).toBeGreaterThanOrEqual(before.updatedAt.getTime());
    expect(await find(before.id)).toMatchObject(changes);
  });

  test('cannot belong to another organization', async () => {
    const other = await worker.systemTransaction((transaction) =>
      insertRow(transaction, DraftEntity, draftOf(foreign)),
    );
    await expect(
      write((transaction) => updateRow(transaction, DraftEntity, other.id, { subject: 'Taken' })),
    ).rejects.toThrow('No row of drafts was written');
    expect((await find(other.id))?.subject).toBe(other.subject);
  });

  test('has no properties that the entity does not have', async () => {
    const unknown = { title: 'A subject' } as never;
    await expect(
      write((transaction) => updateRow(transaction, DraftEntity, 'drf_1', unknown)),
    ).rejects.toThrow('Draft has no property title');
  });
});

describe('a transaction', () => {
  const insertDraft = (transaction: Transaction, id: string) =>
    insertRow(transaction, DraftEntity, { ...draftOf(inbox), id });
  const persistDraft = ({ em }: Transaction, id: string) => {
    em.persist(
      em.create(DraftEntity, { ...draftOf(inbox), id, scheduleVersion: 0, approvalEpisode: 0, version: 1 }),
    );
  };
  const stored = async (ids: string[]) => (await Promise.all(ids.map(find))).map((draft) => draft !== null);
  const newIds = () => Array.from({ length: 4 }, () => newId('draft')) as [string, string, string, string];

  test('commits rows and entities together, or neither', async () => {
    const [first, second, third, fourth] = newIds();
    await write(async (transaction) => {
      await insertDraft(transaction, first);
      persistDraft(transaction, second);
    });
    const failed = write(async (transaction) => {
      persistDraft(transaction, third);
      await insertDraft(transaction, fourth);
      throw new Error('the end');
    });
    await expect(failed).rejects.toThrow('the end');
    expect(await stored([first, second, third, fourth])).toEqual([true, true, false, false]);
  });

  test('undoes a failed savepoint, and only that', async () => {
    const [first, second, third, fourth] = newIds();
    await write(async (transaction) => {
      persistDraft(transaction, first);
      const failed = transaction.savepoint(async (inner) => {
        await insertRow(inner, DraftEntity, { ...draftOf(inbox), id: second });
        persistDraft(inner as Transaction, third);
        await insertRow(inner, DraftEntity, { ...draftOf(inbox), id: second });
      });
      await expect(failed).rejects.toBeInstanceOf(UniqueConstraintViolationException);
      await transaction.savepoint(async (inner) => persistDraft(inner as Transaction, fourth));
    });
    expect(await stored([first, second, third, fourth])).toEqual([true, false, false, true]);
  });

  test('fails if the error of a statement was swallowed, because PostgreSQL has rolled it back', async () => {
    const [first] = newIds();
    const swallowing = write(async (transaction) => {
      await insertDraft(transaction, first);
      await transaction.execute(sql`select 1 / 0`).catch(() => undefined);
    });
    await expect(swallowing).rejects.toThrow('rolled back');
    expect(await stored([first])).toEqual([false]);
  });

  test('makes an entity manager only if something uses it', async () => {
    const fork = jest.spyOn(api.orm.em, 'fork');
    const [first] = newIds();
    await write(async (transaction) => {
      await insertDraft(transaction, first);
      await findRow(transaction, DraftEntity, { where: { id: first }, forUpdate: true });
    });
    expect(fork).not.toHaveBeenCalled();
    await write(async ({ em }) => em.count(DraftEntity, { id: first }));
    expect(fork).toHaveBeenCalledTimes(1);
    fork.mockRestore();
  });

  test('that only reads refuses changes', async () => {
    const [first] = newIds();
    const reading = api.transaction(
      { organizationId: inbox.organizationId, isReadOnly: true },
      (transaction) => insertDraft(transaction, first),
    );
    await expect(reading).rejects.toThrow('read-only transaction');
  });
});
