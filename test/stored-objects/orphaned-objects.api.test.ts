import { describe, expect, test } from '@jest/globals';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import { sql } from 'kysely';
import { createStoredObjectActivities } from '../../activities/stored-objects.activities.ts';
import {
  type OrphanSearchProgress,
  registerOrphanedObjects,
} from '../../domain/stored-objects/orphaned-objects.ts';
import { sweepObjects } from '../../domain/stored-objects/sweep-objects.ts';
import { loadConfig } from '../../platform/config.ts';
import { idFromBytes, idToBytes, newId } from '../../platform/ids.ts';
import { createStorage, type Storage } from '../../platform/storage.ts';
import { createAgedMail } from '../support/aged-mail.ts';
import { startObjectStorage } from '../support/object-storage.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useIsolatedDatabase } from '../support/resources.ts';
import { testStack } from '../support/stack.ts';
import { testEnvironment } from '../support/test-app.ts';

const DAY_MS = 86_400_000;
const BEGINNING: OrphanSearchProgress = { lastKey: '', scanned: 0, registered: 0 };

const database = useIsolatedDatabase('orphaned_objects');

/** The test's own bucket; `search` runs the given number of days after the objects were stored. */
async function withBucket(
  work: (
    storage: Storage,
    search: (days: number, from?: OrphanSearchProgress) => Promise<OrphanSearchProgress>,
  ) => Promise<void>,
) {
  const objects = await startObjectStorage();
  const storage = createStorage(
    loadConfig(testEnvironment(testStack().postgres.workerUrl, objects.environment)),
  );
  const search = (days: number, from = BEGINNING) =>
    registerOrphanedObjects(
      {
        database,
        storage,
        now: () => new Date(Date.now() + days * DAY_MS),
        pause: async () => undefined,
      },
      from,
      () => undefined,
    );
  try {
    await work(storage, search);
  } finally {
    storage.close();
    await objects.stop();
  }
}

const put = (storage: Storage, key: string) => storage.putBytes(key, Buffer.from('x'), 'message/rfc822');
const isRegistered = async (key: string) =>
  (await query(database, sql`select from unclaimed_objects where storage_key = ${key}`)).length > 0;
const makeDue = (keys: string[]) =>
  query(
    database,
    sql`update unclaimed_objects set due_at = date_trunc('milliseconds', now()) where storage_key = any(${keys})`,
  );

describe('finding orphaned objects', () => {
  test('registers an orphan after a week and deletes it later, but keeps objects with a row or an unknown key', async () => {
    await withBucket(async (storage, search) => {
      const inbox = await createInbox(database, await createOrganization(database));
      const [lost, owned, waiting, sentLost] = [
        newId('receipt'),
        newId('receipt'),
        newId('receipt'),
        newId('message'),
      ];
      const messageOf = (receiptId: string) => idFromBytes('message', idToBytes(receiptId));
      const kept = [
        `raw/2026/11/01/${owned}.eml`,
        `attachments/${newId('attachment')}`,
        `attachments/${messageOf(waiting)}/0`,
        `raw/submitted/${newId('receipt')}.eml`,
        'raw/notes.txt',
        `exports/${newId('message')}.zip`,
      ];
      const orphans = [
        `raw/2026/11/01/${lost}.eml`,
        `attachments/${newId('attachment')}`,
        `attachments/${messageOf(lost)}/3`,
        `raw/sent/${sentLost}.eml`,
      ];
      const [rawKey = '', file = ''] = kept;
      await createAgedMail(database, inbox, { at: new Date(), rawKey, files: [file] });
      const sent = await createAgedMail(database, inbox, { at: new Date(), direction: 'outbound' });
      kept.push(`raw/sent/${sent.id}.eml`);
      await database.db
        .insertInto('inbound_receipts')
        .values({
          id: waiting,
          org_id: inbox.organizationId,
          env_id: inbox.environmentId,
          inbox_id: inbox.id,
          kind: 'mail',
          message_id: messageOf(waiting),
          raw_key: `raw/${waiting}`,
          size_bytes: 1,
          sha256: Buffer.alloc(32),
          mail_from: '',
          rcpt_to: inbox.email,
          client_ip: '',
          received_at: new Date(),
        })
        .execute();
      for (const key of [...kept, ...orphans]) await put(storage, key);

      expect(await search(6.9)).toMatchObject({ scanned: kept.length + orphans.length - 1, registered: 0 });
      expect(await search(7.1)).toMatchObject({ registered: orphans.length });
      expect(await search(7.1)).toMatchObject({ registered: 0 });
      for (const key of orphans) expect(await isRegistered(key)).toBe(true);
      for (const key of kept) expect(await isRegistered(key)).toBe(false);

      await makeDue(orphans);
      expect(await sweepObjects(database, storage)).toBe(orphans.length);
      for (const key of orphans)
        await expect(storage.getBytes(key, 10)).rejects.toMatchObject({ failure: 'missing' });
      for (const key of kept) expect((await storage.getBytes(key, 10)).toString()).toBe('x');
    });
  });

  test('covers every page, even when a retry continues after a crash', async () => {
    const keys = Array.from({ length: 2_500 }, () => `raw/2026/11/01/${newId('receipt')}.eml`).sort();
    // The object storage of the tests would return fewer pages.
    const listed: (string | undefined)[] = [];
    const storage: Pick<Storage, 'listPage'> = {
      async listPage(prefix, after) {
        listed.push(after);
        const rest = keys.filter((key) => key.startsWith(prefix) && key > (after ?? ''));
        const objects = rest.slice(0, 1_000).map((key) => ({ key, lastModified: new Date(0) }));
        return { objects, isLast: rest.length <= 1_000 };
      },
    };
    let pauses = 0;
    const search = {
      database,
      storage,
      pause: async () => {
        pauses += 1;
        if (pauses === 2) throw new Error('killed');
      },
    };
    const attempt = async (heartbeatDetails?: unknown) => {
      const environment = new MockActivityEnvironment(
        { heartbeatDetails },
        { logger: new DefaultLogger('ERROR') },
      );
      let beat: unknown;
      environment.on('heartbeat', (details) => {
        beat = details;
      });
      const { registerOrphanedObjects: activity } = createStoredObjectActivities(search);
      return { result: await environment.run(activity).catch(({ message }) => message), beat: () => beat };
    };
    const first = await attempt();
    expect(first.result).toBe('killed');
    expect(first.beat()).toMatchObject({ lastKey: keys[999], registered: 1_000 });
    const second = await attempt(first.beat());
    expect(second.result).toEqual({ scanned: 2_500, registered: 2_500 });
    expect(listed).toEqual([undefined, undefined, keys[999], keys[1_999]]);
    await query(database, sql`delete from unclaimed_objects where storage_key = any(${`{${keys.join()}}`})`);
  });
});

test('lists the next page of a bucket after the last key', async () => {
  await withBucket(async (storage) => {
    const keys = ['raw/a', 'raw/b', 'raw/c'];
    for (const key of [...keys, 'other/a']) await put(storage, key);
    const keysOf = async (after?: string) =>
      (await storage.listPage('raw/', after)).objects.map(({ key }) => key);
    expect(await keysOf()).toEqual(keys);
    expect(await keysOf('raw/a')).toEqual(['raw/b', 'raw/c']);
    expect(await storage.listPage('raw/', 'raw/c')).toEqual({ objects: [], isLast: true });
  });
});
