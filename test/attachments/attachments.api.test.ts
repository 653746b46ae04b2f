import { createHash, randomBytes } from 'node:crypto';
import { type AddressInfo, connect as connectSocket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { AttachmentEntity } from '../../domain/attachments/attachment.entity.ts';
import { deleteUnusedUploads } from '../../domain/attachments/unused-uploads.ts';
import { sweepObjects } from '../../domain/stored-objects/sweep-objects.ts';
import { UnclaimedObjectEntity } from '../../domain/stored-objects/unclaimed-object.entity.ts';
import { sha256 } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { formBytes, formCall } from '../support/form.ts';
import { purgeServiceOf } from '../support/inbox-purge.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { countRows, query } from '../support/query.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const MEBIBYTE = 1024 * 1024;
const objects = useObjectStorage();
const app = useTestApp(() => ({ config: objects.environment }));
let organization: TestOrganization;
let inboxId: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
});

const call = (path: string, request: Call = {}) => app.call(path, { token: organization.token, ...request });
const post = (path: string, body: unknown) => call(path, { method: 'POST', body });
const upload = (content: string | Buffer, filename = 'notes.txt', contentType = 'text/plain') =>
  call(`/inboxes/${inboxId}/attachments`, formCall([{ filename, contentType, content }]));
const base64 = (content: string | Buffer) => Buffer.from(content).toString('base64');

async function uploaded(content: string | Buffer, filename?: string): Promise<string> {
  const response = await upload(content, filename);
  expect(response.statusCode).toBe(201);
  return response.json().id;
}

const rowsOf = ({ id, messageId }: { id?: string; messageId?: string } = {}) =>
  app.worker.db
    .selectFrom('attachments')
    .select(columnsOf(AttachmentEntity))
    .where('org_id', '=', organization.organizationId)
    .$if(id !== undefined, (rows) => rows.where('id', '=', id ?? ''))
    .$if(messageId !== undefined, (rows) => rows.where('message_id', '=', messageId ?? ''))
    .execute();
const entryOf = (storageKey: string) =>
  app.worker.db
    .selectFrom('unclaimed_objects')
    .select(columnsOf(UnclaimedObjectEntity))
    .where('storage_key', '=', storageKey)
    .executeTakeFirst();
const bytesAt = async (key: string) => buffer(await app.storage.getStream(key));
const isGone = (key: string) =>
  expect(app.storage.getStream(key)).rejects.toMatchObject({ failure: 'missing' });

const sweepOwn = (storage: Parameters<typeof sweepObjects>[1] = app.storage) =>
  sweepObjects(app.worker, storage, organization.organizationId);

/** Runs the maintenance sweep as if these uploads were a day old. */
async function sweepADayLater(): Promise<void> {
  const { organizationId } = organization;
  await app.worker.systemTransaction(async ({ db }) => {
    const before = new Date(Date.now() - 25 * 3_600_000);
    await db
      .updateTable('attachments')
      .set({ created_at: before })
      .where('org_id', '=', organizationId)
      .where('message_id', 'is', null)
      .where('draft_id', 'is', null)
      .execute();
  });
  await deleteUnusedUploads(app.worker);
  await app.worker.db
    .updateTable('unclaimed_objects')
    .set({ due_at: new Date(0) })
    .where('org_id', '=', organizationId)
    .execute();
  await sweepOwn();
}

describe('uploads', () => {
  test.each([0, 3, 6 * MEBIBYTE, 25 * MEBIBYTE])(
    'of %i bytes are downloaded unchanged',
    async (sizeBytes) => {
      const content = randomBytes(sizeBytes);
      const response = await upload(content, 'über 日本.bin', 'application/x-test');
      expect(response.statusCode).toBe(201);
      const created = response.json();
      expect(created).toEqual({
        object: 'attachment',
        id: expect.stringMatching(/^att_/),
        filename: 'über 日本.bin',
        content_type: 'application/x-test',
        size_bytes: sizeBytes,
        sha256: createHash('sha256').update(content).digest('hex'),
      });
      const read = (await call(`/attachments/${created.id}`)).json();
      expect(read).toMatchObject(created);
      const lifetimeMs = Date.parse(read.expires_at) - Date.now();
      expect(lifetimeMs).toBeGreaterThan(14 * 60_000);
      expect(lifetimeMs).toBeLessThanOrEqual(15 * 60_000);
      const file = await fetch(read.download_url);
      expect(file.headers.get('content-disposition')).toBe(
        `attachment; filename="_ber __.bin"; filename*=UTF-8''%C3%BCber%20%E6%97%A5%E6%9C%AC.bin`,
      );
      expect(Buffer.from(await file.arrayBuffer()).equals(content)).toBe(true);
      const [row] = await rowsOf({ id: created.id });
      expect(await entryOf(row?.storageKey ?? '')).toBeUndefined();
    },
  );

  test('over 25 MiB are rejected without storing anything', async () => {
    const before = (await rowsOf()).length;
    const problem = expectProblem(await upload(Buffer.alloc(25 * MEBIBYTE + 1)), 'payload_too_large');
    expect(problem).toMatchObject({ max_bytes: 25 * MEBIBYTE });
    expectProblem(await upload(Buffer.alloc(26 * MEBIBYTE)), 'payload_too_large');
    expect(await rowsOf()).toHaveLength(before);
    const left = await app.worker.db
      .selectFrom('unclaimed_objects')
      .select(columnsOf(UnclaimedObjectEntity))
      .where('org_id', '=', organization.organizationId)
      .execute();
    expect(left.length).toBeGreaterThan(0);
    for (const { storageKey } of left) await isGone(storageKey);
  });

  test('over the limit without Content-Length also get a response', async () => {
    const address = await listening();
    const body = formBytes([{ filename: 'big', content: Buffer.alloc(27 * MEBIBYTE) }]);
    const response = await fetch(`${address}/api/v1/inboxes/${inboxId}/attachments`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${organization.token}`,
        'content-type': 'multipart/form-data; boundary=form-of-a-test',
      },
      body: new Blob([new Uint8Array(body)]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ code: 'payload_too_large' });
  });

  test('that are truncated leave neither row nor object', async () => {
    const before = (await rowsOf()).length;
    const completeForm = formBytes([{ filename: 'cut', content: randomBytes(7 * MEBIBYTE) }]);
    for (const bytes of [
      completeForm.subarray(0, 6 * MEBIBYTE),
      completeForm.subarray(0, -5),
      completeForm.subarray(0, 60),
    ]) {
      const response = await call(`/inboxes/${inboxId}/attachments`, formCall([], bytes));
      expectProblem(response, 'validation_error');
    }
    expect(await rowsOf()).toHaveLength(before);
  });

  test('whose client disconnects leave neither row nor object', async () => {
    const before = (await rowsOf()).length;
    const { hostname, port } = new URL(await listening());
    const socket = connectSocket(Number(port), hostname);
    const bytes = formBytes([{ filename: 'gone', content: randomBytes(12 * MEBIBYTE) }]);
    socket.write(
      `POST /api/v1/inboxes/${inboxId}/attachments HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${organization.token}\r\n` +
        `content-type: multipart/form-data; boundary=form-of-a-test\r\ncontent-length: ${bytes.length}\r\n\r\n`,
    );
    await new Promise((done) => socket.write(bytes.subarray(0, 8 * MEBIBYTE), done));
    const pending = await eventually(async () => {
      const entries = await app.worker.db
        .selectFrom('unclaimed_objects')
        .select(columnsOf(UnclaimedObjectEntity))
        .where('org_id', '=', organization.organizationId)
        .where('due_at', '>', new Date(Date.now() + 3_600_000))
        .execute();
      expect(entries).toHaveLength(1);
      return entries;
    });
    socket.destroy();
    const [entry] = pending;
    // Discarded: due immediately.
    await eventually(async () =>
      expect((await entryOf(entry?.storageKey ?? ''))?.dueAt.getTime()).toBeLessThanOrEqual(Date.now()),
    );
    await isGone(entry?.storageKey ?? '');
    expect(await rowsOf()).toHaveLength(before);
  });

  test.each([
    ['no file', []],
    ['a field', [{ name: 'note', content: 'x' }]],
    [
      'a field next to the file',
      [
        { filename: 'a', content: 'a' },
        { name: 'note', content: 'x' },
      ],
    ],
    [
      'two files',
      [
        { filename: 'a', content: 'a' },
        { filename: 'b', content: 'b' },
      ],
    ],
    ['an invalid media type', [{ filename: 'a', contentType: 'text', content: 'a' }]],
    ['a multipart type', [{ filename: 'a', contentType: 'multipart/mixed', content: 'a' }]],
    ['a name with NUL', [{ filename: 'a\u0000b', content: 'a' }]],
  ])('with %s are rejected', async (_name, parts) => {
    const before = (await rowsOf()).length;
    expectProblem(await call(`/inboxes/${inboxId}/attachments`, formCall(parts)), 'validation_error');
    expect(await rowsOf()).toHaveLength(before);
  });

  test('that are not a form are rejected', async () => {
    expectProblem(await post(`/inboxes/${inboxId}/attachments`, { file: 'x' }), 'unsupported_media_type');
    expectProblem(
      await call(`/inboxes/${inboxId}/attachments`, { method: 'POST' }),
      'unsupported_media_type',
    );
  });

  test('restore quotes in the file name that fetch escaped', async () => {
    const response = await upload('x', 'the %22best%22 100%25.txt');
    expect(response.json().filename).toBe('the "best" 100%25.txt');
  });

  test('drop the path from the file name', async () => {
    const response = await upload('x', '../../etc/passwd');
    expect(response.json().filename).toBe('passwd');
  });

  test('with the same Idempotency-Key are stored once, and another file with that key is rejected', async () => {
    const send = (content: string) => {
      const form = formCall([{ filename: 'a.txt', content }]);
      return call(`/inboxes/${inboxId}/attachments`, {
        ...form,
        headers: { ...form.headers, 'idempotency-key': 'upload-1' },
      });
    };
    const first = await send('same');
    const again = await send('same');
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(again.json()).toEqual(first.json());
    expectProblem(await send('other'), 'idempotency_key_reused');
  });

  test('to an inaccessible inbox are rejected before the body is read', async () => {
    const otherOrganization = await createOrganization(app.worker);
    const response = await call(`/inboxes/${inboxId}/attachments`, {
      ...formCall([{ filename: 'a', content: 'a' }]),
      token: otherOrganization.token,
    });
    expectProblem(response, 'not_found');
  });
});

describe('download links', () => {
  test('are rejected by storage if altered or expired', async () => {
    const { download_url: link } = (await call(`/attachments/${await uploaded('secret')}`)).json();
    const altered = [
      link.replace(/X-Amz-Signature=..../, 'X-Amz-Signature=0000'),
      link.replace('X-Amz-Expires=900', 'X-Amz-Expires=90000'),
      link.replace('attachment%3B', 'inline%3B'),
      link.replace(/\?.*/, ''),
    ];
    for (const url of altered) {
      expect(url).not.toBe(link);
      const response = await fetch(url);
      expect(response.status).toBe(403);
      await response.body?.cancel();
    }
    const short = await app.storage.presignGet((await rowsOf())[0]?.storageKey ?? '', {
      filename: 'a',
      contentType: 'text/plain',
      expiresInSeconds: 1,
    });
    await eventually(async () => {
      const response = await fetch(short);
      await response.body?.cancel();
      expect(response.status).toBe(403);
    }, 5_000);
  });
});

describe('attachments of a draft', () => {
  const newDraft = async (attachments: unknown) => {
    const response = await post(`/inboxes/${inboxId}/drafts`, {
      to: [{ email: 'ada@people.example' }],
      attachments,
    });
    expect(response.statusCode).toBe(201);
    return response.json();
  };

  test('accept base64 and uploads and pass their storage keys to the message', async () => {
    const file = await uploaded('from an upload');
    const draft = await newDraft([
      { filename: 'a/b\\日本.txt', content_type: 'text/plain; charset=utf-8', content: base64('inline') },
      { attachment_id: file, filename: 'renamed.txt', content_id: 'logo@x' },
    ]);
    expect(draft.attachments_meta).toEqual([
      {
        attachment_id: expect.stringMatching(/^att_/),
        filename: '日本.txt',
        content_type: 'text/plain; charset=utf-8',
        size_bytes: 6,
        storage_key: expect.stringMatching(/^attachments\//),
        content_id: null,
        disposition: 'attachment',
      },
      expect.objectContaining({
        attachment_id: file,
        filename: 'renamed.txt',
        content_type: 'text/plain',
        content_id: 'logo@x',
        disposition: 'inline',
      }),
    ]);
    expect((await call(`/drafts/${draft.id}`)).json().attachments_meta).toEqual(draft.attachments_meta);
    const listed = (await call(`/inboxes/${inboxId}/drafts?limit=1`)).json();
    expect(listed.data[0].attachments_meta).toEqual(draft.attachments_meta);
    const sent = await post(`/drafts/${draft.id}/send`, undefined);
    expect(sent.statusCode).toBe(201);
    const ids = draft.attachments_meta.map(({ attachment_id }: { attachment_id: string }) => attachment_id);
    expect(sent.json()).toMatchObject({ has_attachments: true, attachment_ids: ids });
    const message = (await call(`/messages/${sent.json().id}`)).json();
    expect(message.attachments).toEqual([
      {
        object: 'attachment',
        id: ids[0],
        filename: '日本.txt',
        content_type: 'text/plain; charset=utf-8',
        size_bytes: 6,
        content_id: null,
        disposition: 'attachment',
      },
      {
        object: 'attachment',
        id: ids[1],
        filename: 'renamed.txt',
        content_type: 'text/plain',
        size_bytes: 14,
        content_id: 'logo@x',
        disposition: 'inline',
      },
    ]);
    expect((await call(`/attachments/${ids[1]}`)).json()).toMatchObject({
      content_id: 'logo@x',
      disposition: 'inline',
    });
    const rows = await rowsOf({ messageId: message.id });
    expect(rows.map(({ storageKey }) => storageKey).sort()).toEqual(
      draft.attachments_meta.map(({ storage_key }: { storage_key: string }) => storage_key).sort(),
    );
    await sweepADayLater();
    for (const { storageKey } of rows) expect((await bytesAt(storageKey)).length).toBeGreaterThan(0);
    expect((await call(`/threads/${message.thread_id}`)).json().has_attachments).toBe(true);
  });

  test('are kept if PATCH omits them, replaced by an array, and removed by null', async () => {
    const draft = await newDraft([
      { filename: 'one', content: base64('1') },
      { filename: 'two', content: base64('2') },
    ]);
    const [one, two] = draft.attachments_meta;
    const patch = async (body: unknown) =>
      (await call(`/drafts/${draft.id}`, { method: 'PATCH', body })).json().attachments_meta;
    expect(await patch({ subject: 'x' })).toEqual([one, two]);
    const replaced = await patch({
      attachments: [
        { filename: 'three', content: base64('3') },
        { attachment_id: two.attachment_id },
        { attachment_id: two.attachment_id },
      ],
    });
    expect(replaced.map(({ filename }: { filename: string }) => filename)).toEqual(['three', 'two', 'two']);
    expect(replaced[1]).toEqual(two);
    expect(replaced[2].storage_key).toBe(two.storage_key);
    expect(replaced[2].attachment_id).not.toBe(two.attachment_id);
    await sweepADayLater();
    await isGone(one.storage_key);
    expect((await bytesAt(two.storage_key)).toString()).toBe('2');
    expect(await patch({ attachments: null })).toEqual([]);
    await sweepADayLater();
    await isGone(two.storage_key);
  });

  test('are deleted with the draft unless another draft shares them', async () => {
    const file = await uploaded('shared');
    const first = await newDraft([{ attachment_id: file }, { filename: 'own', content: base64('own') }]);
    const second = await newDraft([{ attachment_id: file }]);
    const [shared, own] = first.attachments_meta;
    expect(shared.attachment_id).toBe(file);
    expect(second.attachments_meta[0]).toMatchObject({ storage_key: shared.storage_key });
    expect(second.attachments_meta[0].attachment_id).not.toBe(file);
    await call(`/drafts/${first.id}`, { method: 'DELETE' });
    expectProblem(await call(`/attachments/${file}`), 'not_found');
    await sweepADayLater();
    await isGone(own.storage_key);
    expect((await bytesAt(shared.storage_key)).toString()).toBe('shared');
    await call(`/drafts/${second.id}`, { method: 'DELETE' });
    await sweepADayLater();
    await isGone(shared.storage_key);
  });

  test('can use the same upload in two concurrent requests', async () => {
    const file = await uploaded('wanted');
    const drafts = await Promise.all([1, 2, 3].map(() => newDraft([{ attachment_id: file }])));
    const ids = drafts.map(({ attachments_meta: [meta] }) => meta.attachment_id);
    expect(new Set(ids).size).toBe(3);
    expect(ids).toContain(file);
    expect(new Set(drafts.map(({ attachments_meta: [meta] }) => meta.storage_key)).size).toBe(1);
  });
});

describe('attachments of a message', () => {
  const send = (attachments: unknown, headers?: Record<string, string>) =>
    call(`/inboxes/${inboxId}/messages`, {
      method: 'POST',
      body: { to: [{ email: 'ada@people.example' }], text_body: 'x', attachments },
      headers,
    });

  test('can be a file of another message, which keeps it', async () => {
    const first = (await send([{ filename: 'a.txt', content: base64('a') }])).json();
    const second = (await send([{ attachment_id: first.attachment_ids[0] }])).json();
    expect(second.attachments).toMatchObject([{ filename: 'a.txt', size_bytes: 1 }]);
    expect(second.attachment_ids).not.toEqual(first.attachment_ids);
    expect((await call(`/messages/${first.id}`)).json().attachment_ids).toEqual(first.attachment_ids);
  });

  test('are stored once for repeated requests with one Idempotency-Key', async () => {
    const key = { 'idempotency-key': 'message-1' };
    const files = [{ filename: 'a.txt', content: base64('a') }];
    const first = await send(files, key);
    const entries = () =>
      countRows(
        app.worker.db
          .selectFrom('unclaimed_objects')
          .select('storage_key')
          .where('org_id', '=', organization.organizationId),
      );
    const before = await entries();
    expect((await send(files, key)).json()).toEqual(first.json());
    expect(await entries()).toBe(before);
    expectProblem(await send([{ filename: 'b.txt', content: base64('b') }], key), 'idempotency_key_reused');
  });

  test('of a refused message are deleted by the sweep', async () => {
    const before = (await rowsOf()).length;
    const response = await post(`/inboxes/${inboxId}/messages`, {
      attachments: [{ filename: 'a', content: base64('unused') }],
    });
    expectProblem(response, 'no_recipients');
    expect(await rowsOf()).toHaveLength(before);
    await sweepADayLater();
    expect(
      await countRows(
        app.worker.db
          .selectFrom('unclaimed_objects')
          .select('storage_key')
          .where('org_id', '=', organization.organizationId),
      ),
    ).toBe(0);
  });

  const good = { filename: 'a.txt', content: 'YQ==' };
  test.each([
    ['neither content nor id', { filename: 'a' }],
    ['both', { ...good, attachment_id: 'att_x' }],
    ['no name', { content: 'YQ==' }],
    ['an unknown member', { ...good, url: 'https://x.test' }],
    ...['YQ', 'YQ=', 'YR==', 'Y Q==', 'YQ==\n', 'data:text/plain;base64,YQ==', '_-==', 'é'].map(
      (content): [string, object] => [`the content ${JSON.stringify(content)}`, { ...good, content }],
    ),
    ...['\r', '\n', '\u0000', '\u007f', '\r\nBcc: x@y.test'].flatMap((text): [string, object][] => [
      [`${JSON.stringify(text)} in its name`, { ...good, filename: `a${text}` }],
      [`${JSON.stringify(text)} in its type`, { ...good, content_type: `text/plain${text}` }],
      [`${JSON.stringify(text)} in its content id`, { ...good, content_id: `a${text}` }],
    ]),
    ...[
      'text',
      'text/',
      '/plain',
      'a/b/c',
      'text/plain;',
      'text/plain; x',
      'multipart/mixed',
      'té/x',
      '',
    ].map((type): [string, object] => [`the type ${JSON.stringify(type)}`, { ...good, content_type: type }]),
    ...['<a@b>', 'a b', ''].map((cid): [string, object] => [
      `the content id ${JSON.stringify(cid)}`,
      { ...good, content_id: cid },
    ]),
    ['another disposition', { ...good, disposition: 'form-data' }],
  ])('with %s are rejected', async (_name, attachment) => {
    expectProblem(await send([attachment]), 'validation_error');
  });

  test('over a limit are rejected with a fix', async () => {
    expectProblem(await send(Array.from({ length: 101 }, () => good)), 'validation_error');
    const large = expectProblem(
      await send([{ filename: 'a', content: base64(Buffer.alloc(5 * MEBIBYTE + 1)) }]),
      'payload_too_large',
    );
    expect(large.fix).toContain('/attachments');
    const file = await uploaded(Buffer.alloc(13 * MEBIBYTE), 'big');
    expectProblem(await send([{ attachment_id: file }, { attachment_id: file }]), 'payload_too_large');
    expect((await send([{ attachment_id: file }])).statusCode).toBe(201);
    expect((await send([{ filename: 'a', content: base64(Buffer.alloc(5 * MEBIBYTE)) }])).statusCode).toBe(
      201,
    );
  });

  test('that are inaccessible are rejected', async () => {
    const otherOrganization = await createOrganization(app.worker);
    const other = (await createInbox(app.worker, otherOrganization)).id;
    const response = await app.call(`/inboxes/${other}/attachments`, {
      ...formCall([{ filename: 'a', content: 'a' }]),
      token: otherOrganization.token,
    });
    expectProblem(await send([{ attachment_id: response.json().id }]), 'not_found');
    expectProblem(await send([{ attachment_id: 'att_none' }]), 'not_found');
  });

  test('cannot be received files for a key that may send but not read', async () => {
    const first = (await send([{ filename: 'a.txt', content: base64('a') }])).json();
    const { token } = await createKey(app.worker, { ...organization, permissions: ['messages:send'] });
    const response = await call(`/inboxes/${inboxId}/messages`, {
      method: 'POST',
      token,
      body: { to: [{ email: 'a@b.test' }], attachments: [{ attachment_id: first.attachment_ids[0] }] },
    });
    expect(expectProblem(response, 'permission_denied').permission).toBe('messages:read');
  });
});

describe('the sweep', () => {
  test('deletes uploads that were unused for a day, and their bytes', async () => {
    const recentUploadId = await uploaded('young');
    const [{ storageKey } = { storageKey: '' }] = await rowsOf({ id: recentUploadId });
    await deleteUnusedUploads(app.worker);
    await sweepOwn();
    expect((await bytesAt(storageKey)).toString()).toBe('young');
    await sweepADayLater();
    expectProblem(await call(`/attachments/${recentUploadId}`), 'not_found');
    await isGone(storageKey);
    expect(await entryOf(storageKey)).toBeUndefined();
  });

  test('continues after a crash between marking and deleting', async () => {
    const id = await uploaded('half');
    const [{ storageKey } = { storageKey: '' }] = await rowsOf({ id });
    await app.worker.db.deleteFrom('attachments').where('id', '=', id).execute();
    const dead = { deleteMany: () => Promise.reject(new Error('killed')) };
    await expect(sweepOwn(dead)).rejects.toThrow('killed');
    expect(await entryOf(storageKey)).toMatchObject({ deleting: true });
    expect((await bytesAt(storageKey)).toString()).toBe('half');
    await sweepOwn();
    await isGone(storageKey);
  });

  test('skips an upload that is being attached', async () => {
    const id = await uploaded('claimed');
    await app.worker.systemTransaction(async ({ db }) => {
      await db
        .updateTable('attachments')
        .set({ created_at: new Date(0) })
        .where('id', '=', id)
        .execute();
    });
    await app.worker.systemTransaction(async ({ db }) => {
      await query({ db }, sql`select id from attachments where id = ${id} for update`);
      await deleteUnusedUploads(app.worker);
      await db.updateTable('attachments').set({ created_at: new Date() }).where('id', '=', id).execute();
    });
    expect((await call(`/attachments/${id}`)).statusCode).toBe(200);
  });
});

describe('the bytes of a deleted message', () => {
  const EML = Buffer.from('Subject: x\r\n\r\nx');

  /** Inserts a received message with its receipt and raw bytes. */
  async function received(rawKey: string): Promise<string> {
    const body = { to: [{ email: 'a@example.com' }], text_body: 'x' };
    const sent = (await post(`/inboxes/${inboxId}/messages`, body)).json<{ id: string }>();
    await app.storage.putBytes(rawKey, EML, 'message/rfc822');
    await app.worker.systemTransaction(async ({ db }) => {
      await db
        .updateTable('messages')
        .set({ raw_key: rawKey, direction: 'inbound', status: 'received' })
        .where('id', '=', sent.id)
        .execute();
      await db
        .insertInto('inbound_receipts')
        .values({
          id: newId('receipt'),
          org_id: organization.organizationId,
          env_id: organization.productionEnvironmentId,
          inbox_id: inboxId,
          kind: 'mail',
          status: 'processed',
          message_id: sent.id,
          raw_key: rawKey,
          size_bytes: EML.length,
          sha256: sha256(EML),
          mail_from: '',
          rcpt_to: 'a@mail.test',
          client_ip: '127.0.0.1',
          tls: false,
          received_at: new Date(),
        })
        .execute();
    });
    return sent.id;
  }
  const remove = (path: string) => call(path, { method: 'DELETE', token: organization.token });
  const rawKeyOf = () => `raw/2026/11/21/${newId('receipt')}.eml`;

  test('are deleted with the message', async () => {
    const rawKey = rawKeyOf();
    const id = await received(rawKey);
    expect((await remove(`/messages/${id}`)).statusCode).toBe(204);
    await sweepADayLater();
    await isGone(rawKey);
  });

  test('are kept until both inboxes that received it have deleted it', async () => {
    const rawKey = rawKeyOf();
    const [first, second] = [await received(rawKey), await received(rawKey)];
    await remove(`/messages/${first}`);
    await sweepADayLater();
    expect((await bytesAt(rawKey)).equals(EML)).toBe(true);
    await remove(`/messages/${second}`);
    await sweepADayLater();
    await isGone(rawKey);
  });

  test('are deleted with a purged inbox, including duplicates and reports', async () => {
    const rawKey = rawKeyOf();
    const double = rawKeyOf();
    await received(rawKey);
    const id = await received(double);
    await app.worker.db
      .updateTable('inbound_receipts')
      .set({ message_id: newId('message') })
      .where('message_id', '=', id)
      .execute();
    await app.worker.db.updateTable('messages').set({ raw_key: null }).where('id', '=', id).execute();
    await remove(`/inboxes/${inboxId}?purge=true`);
    await purgeServiceOf(app.worker, app.storage).purge(inboxId, () => undefined);
    await sweepADayLater();
    await isGone(rawKey);
    await isGone(double);
  });
});

let address: Promise<string> | undefined;
/** Starts the app on a port, for tests that `inject` does not support. */
function listening(): Promise<string> {
  address ??= app.app.listen({ port: 0, host: '127.0.0.1' }).then(() => {
    const { port } = app.app.server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  });
  return address;
}
