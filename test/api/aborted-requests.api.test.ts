import { once } from 'node:events';
import { type AddressInfo, connect as connectSocket } from 'node:net';
import { beforeAll, expect, test } from '@jest/globals';
import { eventually } from '../support/eventually.ts';
import { createInbox, createOrganization, type TestOrganization } from '../support/organizations.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';
import type { LogLine } from '../support/test-app.ts';

const lines: LogLine[] = [];
const storage = useObjectStorage();
const app = useTestApp(() => ({
  config: { ...storage.environment, PROVIDER_RAW_SECRET: 'x'.repeat(32), TRUST_PROXY: '127.0.0.1' },
  onLogLine: (line) => lines.push(line),
}));
let organization: TestOrganization;
let inboxId: string;
let port: number;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  inboxId = (await createInbox(app.worker, organization)).id;
  await app.app.listen({ port: 0, host: '127.0.0.1' });
  ({ port } = app.app.server.address() as AddressInfo);
});

const countConnections = () =>
  new Promise((resolve) => app.app.server.getConnections((_error, count) => resolve(count)));

const form = 'Content-Type: multipart/form-data; boundary=b';
const part = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nabc';

test.each([
  ['a JSON body', 'POST', '/inboxes', 'Content-Type: application/json', '{"username":'],
  ['the body of a sign-in', 'POST', '/auth/login', 'Content-Type: application/json', '{"email":'],
  ['an upload', 'POST', 'INBOX/attachments', form, part],
  ['an upload before its first part', 'POST', 'INBOX/attachments', form, '--b'],
  ['a stream', 'GET', '/events/stream', '', ''],
  ['a waiting call', 'GET', 'INBOX/messages/wait?timeout_seconds=20', '', ''],
])('%s that its client gives up is no error of the service', async (_what, method, path, header, body) => {
  for (const end of ['destroy', 'resetAndDestroy', 'end'] as const) {
    lines.length = 0;
    const socket = connectSocket(port, '127.0.0.1');
    socket.on('error', () => {});
    const arrived = once(app.app.server, 'request');
    const length = method === 'POST' ? 'Content-Length: 1000\r\n' : '';
    socket.write(
      `${method} /api/v1${path.replace('INBOX', `/inboxes/${inboxId}`)} HTTP/1.1\r\nHost: localhost\r\n` +
        `Authorization: Bearer ${organization.token}\r\n${header}${header && '\r\n'}${length}\r\n${body}`,
    );
    const [request] = await arrived;
    if (method === 'POST')
      await eventually(async () => expect(request.listenerCount('data')).toBeGreaterThan(0));
    socket[end]();
    await eventually(async () => expect(await countConnections()).toBe(0));
    if (method === 'POST')
      await eventually(async () => expect(lines.map(({ msg }) => msg)).toContain('request aborted'));
    expect(lines.filter(({ level }) => level >= 40)).toEqual([]);
  }
});

test('a form that ends before its first part is malformed', async () => {
  const headers = { 'content-type': 'multipart/form-data; boundary=b' };
  for (const raw of [
    '--b',
    '--b\r\n',
    '--b\r\n\r\n',
    '--b\r\n\r\nabc\r\n--b--',
    '--b\r\nX: y\r\n\r\n--b--',
    '',
  ]) {
    const path = `/inboxes/${inboxId}/attachments`;
    const { statusCode } = await app.call(path, { method: 'POST', token: organization.token, raw, headers });
    expect([raw, statusCode]).toEqual([raw, 400]);
  }
});
