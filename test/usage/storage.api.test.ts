import { beforeAll, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { applyUsageDeltas } from '../../domain/usage/apply-usage-deltas.ts';
import { formCall } from '../support/form.ts';
import { purgeServiceOf } from '../support/inbox-purge.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';

const s3 = useObjectStorage();
const app = useTestApp(() => ({ config: s3.environment }));
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({ database: app.worker });
});

async function arrange() {
  const organization = await createOrganization(app.worker);
  const inbox = await createInbox(app.worker, organization);
  const { organizationId, token } = organization;
  const post = (path: string, body: unknown) => app.call(path, { method: 'POST', token, body });
  const remove = (path: string) => app.call(path, { method: 'DELETE', token });
  const upload = (bytes: number) =>
    app.call(`/inboxes/${inbox.id}/attachments`, {
      method: 'POST',
      token,
      ...formCall([{ filename: 'a.bin', content: 'x'.repeat(bytes) }]),
    });
  const send = (files: object[]) =>
    post(`/inboxes/${inbox.id}/messages`, {
      to: [{ email: 'somebody@example.com' }],
      subject: 'Files',
      text_body: 'Text',
      attachments: files,
    });
  const readStorage = async () => {
    const { current } = (await app.call('/org/usage', { token })).json().counters.storage_bytes;
    const [row] = await query<{ sum: number }>(
      app.worker,
      sql`select coalesce(sum(size_bytes), 0)::int as sum from attachments where org_id = ${organizationId}`,
    );
    expect(current).toBe(row?.sum);
    return current;
  };
  const allow = (limit: number) => setLimit(limits, organizationId, { resource: 'storage_bytes', limit });
  /** Objects are registered before they are uploaded. */
  const countRegistered = async () => {
    const [row] = await query<{ count: number }>(
      app.worker,
      sql`select count(*)::int as count from unclaimed_objects where org_id = ${organizationId}`,
    );
    return row?.count;
  };
  return { inbox, token, post, remove, upload, send, readStorage, allow, countRegistered };
}

const file = (bytes: number) => ({
  filename: 'a.txt',
  content: Buffer.alloc(bytes, 'a').toString('base64'),
});

test('tracks storage through uploads, drafts, messages and all deletions', async () => {
  const { inbox, token, post, remove, upload, send, readStorage } = await arrange();
  const uploaded = (await upload(100)).json();
  expect(await readStorage()).toBe(100);

  const draft = (await post(`/inboxes/${inbox.id}/drafts`, { attachments: [file(10), file(20)] })).json();
  expect(await readStorage()).toBe(130);
  await app.call(`/drafts/${draft.id}`, { method: 'PATCH', token, body: { attachments: [file(5)] } });
  expect(await readStorage()).toBe(105);
  await applyUsageDeltas(app.worker);
  expect(await readStorage()).toBe(105);
  await remove(`/drafts/${draft.id}`);
  expect(await readStorage()).toBe(100);

  // Sending an upload keeps its bytes; a forward counts them again.
  const first = (await send([{ attachment_id: uploaded.id }, file(7)])).json();
  expect(await readStorage()).toBe(107);
  const forwarded = await post(`/messages/${first.id}/forward`, { to: [{ email: 'other@example.com' }] });
  expect(forwarded.statusCode).toBe(201);
  expect(await readStorage()).toBe(214);
  // A message still being sent cannot be deleted.
  for (const { id } of [first, forwarded.json()]) await post(`/messages/${id}/cancel`, undefined);
  expect((await remove(`/messages/${first.id}`)).statusCode).toBe(204);
  expect(await readStorage()).toBe(107);
  expect((await remove(`/threads/${forwarded.json().thread_id}`)).statusCode).toBe(204);
  expect(await readStorage()).toBe(0);

  await send([file(50)]);
  await post(`/inboxes/${inbox.id}/drafts`, { attachments: [file(3)] });
  expect(await readStorage()).toBe(53);
  await app.call(`/inboxes/${inbox.id}?purge=true`, { method: 'DELETE', token });
  const purges = purgeServiceOf(app.worker);
  await purges.purge(inbox.id, () => undefined);
  expect(await readStorage()).toBe(0);
  await applyUsageDeltas(app.worker);
  expect(await readStorage()).toBe(0);
  const today = (await app.call('/org/usage/history', { token })).json().data.at(-1);
  expect(today).toMatchObject({ storage_bytes: 0 });
});

test('rejects bytes over a hard limit before storing them and keeps existing files usable', async () => {
  const { inbox, post, upload, send, readStorage, allow, countRegistered } = await arrange();
  await allow(100);
  const uploaded = (await upload(60)).json();
  const refused = await upload(41);
  expect(expectProblem(refused, 'usage_limit_exceeded')).toMatchObject({ counter: 'storage_bytes' });
  expect(refused.json().resets_at).toBeUndefined();
  const before = await countRegistered();
  expectProblem(await send([file(41)]), 'usage_limit_exceeded');
  expectProblem(
    await post(`/inboxes/${inbox.id}/drafts`, { attachments: [file(20), file(21)] }),
    'usage_limit_exceeded',
  );
  expect(await countRegistered()).toBe(before);
  expect(await readStorage()).toBe(60);
  expect((await send([{ attachment_id: uploaded.id }, file(40)])).statusCode).toBe(201);
  expect(await readStorage()).toBe(100);
  expectProblem(await upload(1), 'usage_limit_exceeded');
  expect((await send([])).statusCode).toBe(201);
});

test('requires quota for a file used again, but not for sending a draft with its files', async () => {
  const { inbox, post, upload, send, readStorage, allow } = await arrange();
  const to = [{ email: 'other@example.com' }];
  const first = (await send([file(60)])).json();
  const [{ id: stored }] = first.attachments;
  const draft = (
    await post(`/inboxes/${inbox.id}/drafts`, { to, subject: 'Files', attachments: [file(10)] })
  ).json();
  const forward = (body: object) => post(`/messages/${first.id}/forward`, { to, ...body });
  await allow(129);
  expect(expectProblem(await forward({}), 'usage_limit_exceeded')).toMatchObject({
    counter: 'storage_bytes',
  });
  const again = { attachments: [{ attachment_id: stored }] };
  for (const refused of [
    await send(again.attachments),
    await post(`/messages/${first.id}/reply`, { text_body: 'Text', ...again }),
    await post(`/inboxes/${inbox.id}/drafts`, again),
  ])
    expectProblem(refused, 'usage_limit_exceeded');
  // Each of the two would fit on its own.
  await allow(139);
  expectProblem(await forward({ attachments: [file(10)] }), 'usage_limit_exceeded');
  expect(await readStorage()).toBe(70);
  expect((await post(`/drafts/${draft.id}/send`, undefined)).statusCode).toBe(201);
  expect((await forward({ include_attachments: false })).statusCode).toBe(201);
  expect((await forward({})).statusCode).toBe(201);
  expect(await readStorage()).toBe(130);
  expectProblem(await upload(10), 'usage_limit_exceeded');
});
