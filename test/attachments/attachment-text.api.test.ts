import { beforeAll, describe, expect, test } from '@jest/globals';
import { createAttachmentTextService } from '../../domain/attachments/attachment-text.service.ts';
import type { ReadFile } from '../../domain/attachments/text/file-reader.ts';
import { deleteUnusedUploads } from '../../domain/attachments/unused-uploads.ts';
import { registerOrphanedObjects } from '../../domain/stored-objects/orphaned-objects.ts';
import { sweepObjects } from '../../domain/stored-objects/sweep-objects.ts';
import { encryptedPdf, pdf, pdfText } from '../support/built-files.ts';
import { formCall } from '../support/form.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';
import { testScope } from '../support/test-scope.ts';

const objects = useObjectStorage();
const app = useTestApp(() => ({ config: objects.environment }));
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

const FILE = pdf([pdfText('Invoice 4711'), pdfText('Total 12.50 EUR')]);

async function uploaded(content: Buffer | string, filename = 'a.pdf', contentType = 'application/pdf') {
  const { token } = organization;
  const form = formCall([{ filename, contentType, content }]);
  const response = await app.call(`/inboxes/${inboxId}/attachments`, { token, ...form });
  expect(response.statusCode).toBe(201);
  return response.json().id as string;
}
const read = (id: string, query = '', token = organization.token) =>
  app.call(`/attachments/${id}/text${query}`, { token });
const rowOf = (id: string) =>
  app.worker.db
    .selectFrom('attachments')
    .select(['text_key', 'storage_key'])
    .where('id', '=', id)
    .executeTakeFirstOrThrow();
const textKeyOf = async (id: string) => (await rowOf(id)).text_key ?? '';
const isGone = (key: string) =>
  expect(app.storage.getStream(key)).rejects.toMatchObject({ failure: 'missing' });

/** The service with a reader that counts, or waits. */
const serviceWith = (readFile: () => Promise<ReadFile>) =>
  createAttachmentTextService({ database: app.database, storage: app.storage, reader: { read: readFile } });
const WORDS: ReadFile = { format: 'plain', text: 'words', leftOut: [] };

describe('GET /attachments/{id}/text', () => {
  test('answers the text of a PDF', async () => {
    const id = await uploaded(FILE);
    const response = await read(id);
    expect(response.statusCode).toBe(200);
    expect(response.json()).toEqual({
      object: 'attachment_text',
      attachment_id: id,
      filename: 'a.pdf',
      content_type: 'application/pdf',
      format: 'pdf',
      text: 'Invoice 4711\n\nTotal 12.50 EUR',
      truncated: false,
      total_chars: 29,
      offset: 0,
      next_offset: null,
      left_out: [],
    });
  });

  test('gives the text in parts that join to the whole', async () => {
    const id = await uploaded('one 😀 two', 'a.txt', 'text/plain');
    let text = '';
    for (let offset: number | null = 0; offset !== null; ) {
      const part: { text: string; next_offset: number | null } = (
        await read(id, `?max_chars=5&offset=${offset}`)
      ).json();
      expect(part).toMatchObject({ offset, total_chars: 10, truncated: part.next_offset !== null });
      text += part.text;
      offset = part.next_offset;
    }
    expect(text).toBe('one 😀 two');
    expect((await read(id, '?offset=500')).json()).toMatchObject({ text: '', truncated: false });
  });

  test('says why a file cannot be read, again without reading it', async () => {
    const id = await uploaded(encryptedPdf());
    for (let time = 0; time < 2; time += 1) {
      const problem = expectProblem(await read(id), 'unprocessable');
      expect(problem.detail).toContain('encrypted with a password');
      expect(problem.fix).toContain('without a password');
    }
    expect(await textKeyOf(id)).toMatch(/^attachments\/att_/);
  });

  test('needs messages:read and the inbox of the file', async () => {
    const id = await uploaded(FILE);
    const writer = await createKey(app.worker, {
      organizationId: organization.organizationId,
      permissions: ['drafts:write'],
    });
    expectProblem(await read(id, '', writer.token), 'permission_denied');
    const stranger = await createOrganization(app.worker);
    expectProblem(await read(id, '', stranger.token), 'not_found');
    expect(await textKeyOf(id)).toBe('');
  });
});

describe('the text of a file', () => {
  test('is read once for requests at the same time and later ones', async () => {
    const id = await uploaded(FILE);
    let reads = 0;
    const service = serviceWith(async () => {
      reads += 1;
      return WORDS;
    });
    const scope = testScope(organization);
    const texts = await Promise.all([1, 2, 3, 4, 5].map(() => service.read(scope, id)));
    texts.push(await service.read(scope, id));
    expect(texts.map(({ text }) => text)).toEqual(Array(6).fill('words'));
    expect(reads).toBe(1);
  });

  test('is also stored at the first request of a support session that may only read', async () => {
    const id = await uploaded(FILE);
    const scope = { ...testScope(organization), isReadOnly: true };
    await serviceWith(async () => WORDS).read(scope, id);
    expect(await textKeyOf(id)).toMatch(/^attachments\/att_/);
  });

  test('that two processes read at the same time is stored once', async () => {
    const id = await uploaded(FILE);
    const both = Promise.withResolvers<void>();
    let reads = 0;
    const services = [1, 2].map(() =>
      serviceWith(async () => {
        reads += 1;
        if (reads === 2) both.resolve();
        await both.promise;
        return WORDS;
      }),
    );
    await Promise.all(services.map((service) => service.read(testScope(organization), id)));
    expect(reads).toBe(2);
    const due = await app.worker.db
      .selectFrom('unclaimed_objects')
      .select('storage_key')
      .where('org_id', '=', organization.organizationId)
      .where('due_at', '<=', new Date())
      .execute();
    expect(due).toHaveLength(1);
    await sweepObjects(app.worker, app.storage, organization.organizationId);
    await isGone(due[0]?.storage_key ?? '');
    expect((await read(id)).json().text).toBe('words');
  });

  test('is kept by the searches for objects without a row, and deleted with the file', async () => {
    const id = await uploaded(FILE);
    await read(id);
    const { text_key: textKey, storage_key: storageKey } = await rowOf(id);
    expect(textKey).not.toBe(storageKey);
    const { registered } = await registerOrphanedObjects(
      {
        database: app.worker,
        storage: app.storage,
        now: () => new Date(Date.now() + 8 * 86_400_000),
        pause: async () => undefined,
      },
      { lastKey: '', scanned: 0, registered: 0 },
      () => undefined,
    );
    expect(registered).toBe(0);
    await app.worker.db
      .updateTable('attachments')
      .set({ created_at: new Date(Date.now() - 25 * 3_600_000) })
      .where('id', '=', id)
      .execute();
    await deleteUnusedUploads(app.worker);
    await sweepObjects(app.worker, app.storage, organization.organizationId);
    await isGone(storageKey);
    await isGone(textKey ?? '');
  });

  test('of a file that is deleted meanwhile is not kept', async () => {
    const id = await uploaded(FILE);
    const service = serviceWith(async () => {
      await app.worker.db.deleteFrom('attachments').where('id', '=', id).execute();
      return WORDS;
    });
    await service.read(testScope(organization), id);
    await sweepObjects(app.worker, app.storage, organization.organizationId);
    const left = await app.worker.db
      .selectFrom('unclaimed_objects')
      .select('storage_key')
      .where('org_id', '=', organization.organizationId)
      .execute();
    expect(left).toEqual([]);
  });

  test('whose storing is interrupted is registered for deletion, and read at the next request', async () => {
    const id = await uploaded(FILE);
    let key = '';
    const interrupted = createAttachmentTextService({
      database: app.database,
      storage: {
        getBytes: app.storage.getBytes,
        async putBytes(...put) {
          await app.storage.putBytes(...put);
          [key] = put;
          throw new Error('The process ends here');
        },
      },
      reader: { read: async () => WORDS },
    });
    await expect(interrupted.read(testScope(organization), id)).rejects.toThrow('ends here');
    expect(await textKeyOf(id)).toBe('');
    await app.worker.db
      .updateTable('unclaimed_objects')
      .set({ due_at: new Date() })
      .where('storage_key', '=', key)
      .execute();
    await sweepObjects(app.worker, app.storage, organization.organizationId);
    await isGone(key);
    expect((await read(id)).json().format).toBe('pdf');
  });

  test('is read again if its object is missing, or an hour after its reading was stopped', async () => {
    const id = await uploaded(FILE);
    const service = serviceWith(async () => WORDS);
    const scope = testScope(organization);
    await service.read(scope, id);
    const first = await textKeyOf(id);
    await app.storage.delete(first);
    expect((await service.read(scope, id)).text).toBe('words');
    const second = await textKeyOf(id);
    expect(second).not.toBe(first);
    const stopped = {
      failure: { reason: 'x', fix: 'y' },
      wasStopped: true,
      readAt: new Date().toISOString(),
    };
    const put = (at: number) =>
      app.storage.putBytes(
        second,
        Buffer.from(JSON.stringify({ ...stopped, readAtMs: at })),
        'application/json',
      );
    await put(Date.now());
    await expect(service.read(scope, id)).rejects.toMatchObject({ code: 'unprocessable' });
    await put(Date.now() - 3_700_000);
    expect((await service.read(scope, id)).text).toBe('words');
    await sweepObjects(app.worker, app.storage, organization.organizationId);
    await isGone(second);
  });

  test('is unavailable while storage fails or too many files are read, and nothing is stored', async () => {
    const id = await uploaded(FILE);
    const { storage_key: storageKey } = await rowOf(id);
    await app.storage.delete(storageKey);
    expectProblem(await read(id), 'unavailable');
    expect(await textKeyOf(id)).toBe('');
  });
});
