import { writeFileSync } from 'node:fs';
import { beforeAll, describe, expect, jest, test } from '@jest/globals';
import type { ExportRunner } from '../../domain/exports/export-runner.ts';
import { AGENT_PERMISSIONS } from '../../domain/identity/permissions.ts';
import {
  createCrashingRunner,
  createTestExportRunner,
  readExportRow,
  runExport,
  useExportApp,
} from '../support/exports.ts';
import {
  createInbox,
  createKey,
  createOrganization,
  type TestOrganization,
} from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { asSchemaOwner } from '../support/rich-organization.ts';
import type { Call } from '../support/test-app.ts';
import { readZip } from '../support/zip-reader.ts';

/** Writing an archive takes many steps and transactions, which is slow on a busy machine. */
jest.setTimeout(180_000);

const { app, archivePath } = useExportApp();
let runner: ExportRunner;
beforeAll(() => {
  runner = createTestExportRunner(app);
});

const exportPath = ({ organizationId }: TestOrganization) => `/organizations/${organizationId}/export`;
const requestExport = (organization: TestOrganization, query = '', call: Call = {}) =>
  app.call(`${exportPath(organization)}${query}`, { token: organization.token, ...call });
const callExport = (organization: TestOrganization, exportId: string, call: Call = {}) =>
  app.call(`/organizations/${organization.organizationId}/exports/${exportId}`, {
    token: organization.token,
    ...call,
  });
const startsOf = (organization: TestOrganization) =>
  app.commands.filter(({ start }) => start?.searchAttributes.OrgId === organization.organizationId);

describe('GET /organizations/{id}/export', () => {
  test.each([
    ['sec-purpose', 'prefetch;prerender'],
    ['purpose', 'prefetch'],
    ['x-moz', 'prefetch'],
  ])('is not started by a prefetch (%s: %s)', async (name, value) => {
    const organization = await createOrganization(app.worker);
    for (const prefix of ['', '/api/v1']) {
      const response = await app.call(`/organizations/${organization.organizationId}/export`, {
        token: organization.token,
        prefix,
        headers: { [name]: value },
      });
      expect(response.json()).toMatchObject({ status: 409, code: 'conflict' });
    }
    expect(startsOf(organization)).toEqual([]);
  });

  test('starts an export once, shows its progress, then a link to the complete archive', async () => {
    const organization = await createOrganization(app.worker);
    const inbox = await createInbox(app.worker, organization);
    const first = await requestExport(organization);
    expect(first.statusCode).toBe(202);
    expect(first.headers['retry-after']).toBe('10');
    expect(first.headers['cache-control']).toBe('no-store');
    const { export_id: id } = first.json();
    expect(id).toMatch(/^exp_/);
    expect(first.json()).toMatchObject({ status: 'queued', download_url: null, previous: null });

    const again = await requestExport(organization, '?fresh=true');
    expect(again.statusCode).toBe(202);
    expect(again.json().export_id).toBe(id);
    expect(startsOf(organization)).toHaveLength(1);

    await expect(createCrashingRunner(app, { afterParts: 1 }).write(id)).rejects.toThrow('gone');
    const running = (await requestExport(organization)).json();
    expect(running).toMatchObject({ status: 'running', progress: { files_total: 0 } });
    expect(running.progress.rows_total).toBeGreaterThan(4);
    expect(running.progress.bytes_written).toBeGreaterThan(0);

    await runExport(runner, id);
    const ready = await requestExport(organization);
    expect(ready.statusCode).toBe(200);
    const { download_url: url, size_bytes: sizeBytes, ...record } = ready.json();
    expect(record).toMatchObject({ export_id: id, status: 'ready', requested_by: organization.keyId });
    expect(Date.parse(record.expires_at) - Date.now()).toBeGreaterThan(23.9 * 3_600_000);
    const response = await fetch(url);
    expect(response.headers.get('content-disposition')).toContain(`${id}.zip`);
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes).toHaveLength(sizeBytes);
    const file = archivePath(id);
    writeFileSync(file, bytes);
    const inboxes = (await readZip(file)).find(({ name }) => name === 'data/inboxes.jsonl');
    expect((await inboxes?.read())?.toString()).toContain(inbox.id);
    const { rows: emails } = await asSchemaOwner((client) =>
      client.query('select template, params from notifications where org_id = $1', [
        organization.organizationId,
      ]),
    );
    expect(emails).toEqual([
      {
        template: 'export-ready',
        params: expect.objectContaining({
          exportId: id,
          keyId: organization.keyId,
          keyName: 'Test key',
          expiresAt: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d UTC$/),
        }),
      },
    ]);
    expect(JSON.stringify(emails)).not.toContain('X-Amz');
  });

  test('is also served without /api/v1, as the specification defines it', async () => {
    const organization = await createOrganization(app.worker);
    const headers = { authorization: `Bearer ${organization.token}` };
    const response = await app.app.inject({ url: exportPath(organization), headers });
    expect(response.statusCode).toBe(202);
    expect((await requestExport(organization)).json().export_id).toBe(response.json().export_id);
    const { export_id: id } = response.json();
    const single = await app.app.inject({
      url: `/organizations/${organization.organizationId}/exports/${id}`,
      headers,
    });
    expect(single.json()).toMatchObject({ export_id: id, status: 'queued' });
  });

  test('starts one export for concurrent requests', async () => {
    const organization = await createOrganization(app.worker);
    const answers = await Promise.all(Array.from({ length: 12 }, () => requestExport(organization)));
    expect(new Set(answers.map(({ statusCode }) => statusCode))).toEqual(new Set([202]));
    expect(new Set(answers.map((answer) => answer.json().export_id)).size).toBe(1);
    expect(startsOf(organization)).toHaveLength(1);
  });

  test('replaces an archive that was completed more than an hour ago, whose link still works', async () => {
    const organization = await createOrganization(app.worker);
    const { export_id: first } = (await requestExport(organization)).json();
    await runExport(runner, first);
    const setAge = (age: string) =>
      asSchemaOwner((client) =>
        client.query(`update exports set completed_at = now() - $2::interval where id = $1`, [first, age]),
      );
    await setAge('59 minutes');
    expect((await requestExport(organization)).statusCode).toBe(200);
    await setAge('61 minutes');
    const second = await requestExport(organization);
    expect(second.statusCode).toBe(202);
    expect(second.json().export_id).not.toBe(first);
    const old = (await callExport(organization, first)).json();
    expect(old).toMatchObject({ status: 'ready', download_url: expect.any(String) });
    expect((await fetch(old.download_url)).status).toBe(200);
    await runExport(runner, second.json().export_id);
    expect((await fetch(old.download_url)).status).toBe(200);
    expect((await requestExport(organization)).json()).toMatchObject({
      export_id: second.json().export_id,
      status: 'ready',
    });
  });

  test('starts another export on request, and when the last one is a day old', async () => {
    const organization = await createOrganization(app.worker);
    const { export_id: first } = (await requestExport(organization)).json();
    await runExport(runner, first);
    // Polling with `fresh` eventually returns the archive.
    const polled = await requestExport(organization, '?fresh=true');
    expect([polled.statusCode, polled.json().export_id]).toEqual([200, first]);
    await asSchemaOwner((client) =>
      client.query(`update exports set completed_at = now() - interval '11 minutes' where id = $1`, [first]),
    );
    expect((await requestExport(organization)).json().export_id).toBe(first);
    const fresh = await requestExport(organization, '?fresh=true');
    expect(fresh.statusCode).toBe(202);
    const { export_id: second, previous } = fresh.json();
    expect(second).not.toBe(first);
    expect(previous).toBeNull();
    expect((await callExport(organization, first)).json()).toMatchObject({ status: 'ready' });
    await runExport(runner, second);

    await asSchemaOwner((client) =>
      client.query(`update exports set expires_at = now() - interval '1 second' where id = $1`, [second]),
    );
    expect((await callExport(organization, second)).json()).toMatchObject({
      status: 'expired',
      download_url: null,
    });
    const third = await requestExport(organization);
    expect(third.statusCode).toBe(202);
    expect([first, second]).not.toContain(third.json().export_id);
  });

  test('starts a new export after a failed one and shows why it failed', async () => {
    const organization = await createOrganization(app.worker);
    const { export_id: failed } = (await requestExport(organization)).json();
    await runner.abort(failed, 'failed', 'Storage did not answer for a day.');
    expect((await callExport(organization, failed)).json()).toMatchObject({
      status: 'failed',
      status_detail: 'Storage did not answer for a day.',
    });
    const next = (await requestExport(organization)).json();
    const previous = {
      export_id: failed,
      status: 'failed',
      status_detail: 'Storage did not answer for a day.',
    };
    expect(next).toMatchObject({ status: 'queued', previous });
    expect((await requestExport(organization)).json()).toMatchObject({ export_id: next.export_id, previous });
  });

  test('is not started by HEAD', async () => {
    const organization = await createOrganization(app.worker);
    expect((await requestExport(organization, '', { method: 'HEAD' })).statusCode).toBe(405);
    expect(startsOf(organization)).toHaveLength(0);
  });

  test('requires the permission and a key of the whole organization', async () => {
    const organization = await createOrganization(app.worker);
    const other = await createOrganization(app.worker);
    const { productionEnvironmentId: environmentId } = organization;
    const inbox = await createInbox(app.worker, organization);
    const bound = [
      await createKey(app.worker, { ...organization, environmentId, permissions: ['export:create'] }),
      await createKey(app.worker, { ...organization, inboxId: inbox.id, environmentId }),
    ];
    for (const { token } of bound) {
      const problem = expectProblem(await requestExport(organization, '', { token }), 'permission_denied');
      expect(problem.fix).toContain('bound to no environment');
    }
    expectProblem(await requestExport(organization, '', { token: other.token }), 'not_found');
    const agent = await createKey(app.worker, { ...organization, permissions: [...AGENT_PERMISSIONS] });
    expectProblem(await requestExport(organization, '', { token: agent.token }), 'permission_denied');
    expectProblem(await requestExport(organization, '?fresh=maybe'), 'validation_error');
    expect(startsOf(organization)).toHaveLength(0);
  });

  test('works while the organization is suspended', async () => {
    const organization = await createOrganization(app.worker);
    await asSchemaOwner((client) =>
      client.query(`update organizations set status = 'suspended' where id = $1`, [
        organization.organizationId,
      ]),
    );
    expect((await requestExport(organization)).statusCode).toBe(202);
  });
});

describe('DELETE /organizations/{id}/exports/{export_id}', () => {
  test('cancels a running export and removes its upload', async () => {
    const organization = await createOrganization(app.worker);
    const { export_id: id } = (await requestExport(organization)).json();
    await expect(createCrashingRunner(app, { afterParts: 2 }).write(id)).rejects.toThrow('gone');
    const { upload_id: uploadId } = await readExportRow(id);
    expect(uploadId).toEqual(expect.any(String));
    const canceled = await callExport(organization, id, { method: 'DELETE' });
    expect(canceled.statusCode).toBe(200);
    expect(canceled.json()).toMatchObject({ status: 'canceled', status_detail: 'Canceled.' });
    expect(app.commands.at(-1)).toEqual({
      signal: { workflowId: `export/${id}`, signalName: 'cancel', args: [] },
    });
    // The run then removes the upload.
    await expect(runner.write(id)).resolves.toMatchObject({ status: 'canceled' });
    await runner.abort(id, 'canceled', 'Canceled.');
    expect(await readExportRow(id)).toMatchObject({
      status: 'canceled',
      upload_id: null,
    });
    await expect(
      app.storage.multipartUploads.uploadPart(`exports/${id}.zip`, String(uploadId), 1, Buffer.from('x')),
    ).rejects.toMatchObject({ failure: 'missing' });
    expect((await callExport(organization, id, { method: 'DELETE' })).json()).toMatchObject({
      status: 'canceled',
    });
    expect((await requestExport(organization)).json()).toMatchObject({
      status: 'queued',
      previous: { export_id: id, status: 'canceled' },
    });
  });

  test('stops the worker that writes it', async () => {
    const organization = await createOrganization(app.worker);
    const { export_id: id } = (await requestExport(organization)).json();
    const { multipartUploads } = app.storage;
    let parts = 0;
    const writing = createTestExportRunner(app, {
      storage: {
        ...app.storage,
        multipartUploads: {
          ...multipartUploads,
          async uploadPart(...call) {
            parts += 1;
            if (parts === 1) await callExport(organization, id, { method: 'DELETE' });
            return multipartUploads.uploadPart(...call);
          },
        },
      },
    });
    await expect(writing.write(id)).resolves.toMatchObject({ status: 'canceled' });
    expect(parts).toBeLessThan(4);
    expect(await app.storage.sizeOf(`exports/${id}.zip`)).toBeUndefined();
  });

  test('deletes a ready archive', async () => {
    const organization = await createOrganization(app.worker);
    const { export_id: id } = (await requestExport(organization)).json();
    await runExport(runner, id);
    const removed = await callExport(organization, id, { method: 'DELETE' });
    expect(removed.json()).toMatchObject({ status: 'expired', download_url: null });
    const { rows } = await asSchemaOwner((client) =>
      client.query('select due_at <= now() as due from unclaimed_objects where storage_key = $1', [
        `exports/${id}.zip`,
      ]),
    );
    expect(rows).toEqual([{ due: true }]);
    expect((await requestExport(organization)).statusCode).toBe(202);
  });

  test('and GET only find exports of the own organization', async () => {
    const [organization, other] = [
      await createOrganization(app.worker),
      await createOrganization(app.worker),
    ];
    const { export_id: id } = (await requestExport(other)).json();
    for (const method of ['GET', 'DELETE'] as const) {
      expectProblem(await callExport(organization, id, { method }), 'not_found');
      expectProblem(await callExport(other, id, { method, token: organization.token }), 'not_found');
      expectProblem(await callExport(organization, 'exp_none', { method }), 'not_found');
    }
    expect(await readExportRow(id)).toMatchObject({ status: 'queued' });
  });
});
