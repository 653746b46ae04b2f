import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, test } from '@jest/globals';
import { startHostGuard } from '../../dev/stack/host-guard.ts';
import { startMailUi } from '../../dev/stack/mail-ui.ts';
import { findFreePort, pickLoopbackAddress } from '../../dev/stack/ports.ts';
import { startS3 } from '../../dev/stack/s3.ts';

const cleanUps: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Sends exactly these headers, which `fetch` would not. */
function ask(port: number, headers: Record<string, string>, { method = 'GET', path = '/', body = '' } = {}) {
  return new Promise<{ status: number | undefined; headers: IncomingHttpHeaders; body: string }>(
    (resolve, reject) => {
      const asked = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
        text(response).then(
          (content) => resolve({ status: response.statusCode, headers: response.headers, body: content }),
          reject,
        );
      });
      asked.once('error', reject);
      asked.end(body);
    },
  );
}

async function startGuarded() {
  const seen: { method: string | undefined; headers: IncomingHttpHeaders; body: string }[] = [];
  const upstream = createServer(async (incoming, response) => {
    seen.push({ method: incoming.method, headers: incoming.headers, body: await text(incoming) });
    response.writeHead(201, { 'x-upstream': 'yes' }).end('content');
  });
  upstream.on('upgrade', (_incoming, socket, head) => {
    socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n');
    // The first bytes may arrive together with the request.
    socket.write(head);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  const port = await findFreePort();
  const guard = await startHostGuard({
    port,
    upstream: { host: '127.0.0.1', port: (upstream.address() as AddressInfo).port },
    headers: { authorization: 'Basic secret' },
  });
  cleanUps.push(
    () => new Promise((resolve) => upstream.close(resolve)),
    () => upstream.closeAllConnections(),
    () => guard.stop(),
  );
  return { port, seen };
}

describe('the guard of a web page on this machine', () => {
  test.each(['127.0.0.1', 'localhost', 'LOCALHOST', '[::1]'])('passes requests to %s on', async (name) => {
    const { port, seen } = await startGuarded();
    const origin = `http://${name.toLowerCase()}:${port}`;
    const asked = await ask(port, { host: `${name}:${port}`, origin }, { method: 'POST', body: 'hello' });
    expect(asked).toMatchObject({ status: 201, headers: { 'x-upstream': 'yes' }, body: 'content' });
    expect(seen).toMatchObject([
      { method: 'POST', body: 'hello', headers: { authorization: 'Basic secret' } },
    ]);
  });

  test.each<[string, number, (port: number) => Record<string, string>]>([
    ['another host name, as after DNS rebinding', 421, (port) => ({ host: `evil.example:${port}` })],
    ['another port', 421, () => ({ host: '127.0.0.1:1' })],
    ['no port', 421, () => ({ host: 'localhost' })],
    ['a subdomain of localhost', 421, (port) => ({ host: `evil.localhost:${port}` })],
    [
      'the origin of another website',
      403,
      (port) => ({ host: `127.0.0.1:${port}`, origin: 'https://evil.example' }),
    ],
    ['an opaque origin', 403, (port) => ({ host: `127.0.0.1:${port}`, origin: 'null' })],
    [
      'an image in another website',
      403,
      (port) => ({
        host: `127.0.0.1:${port}`,
        'sec-fetch-site': 'cross-site',
        'sec-fetch-mode': 'no-cors',
      }),
    ],
  ])('refuses %s', async (_name, status, headers) => {
    const { port, seen } = await startGuarded();
    expect((await ask(port, headers(port))).status).toBe(status);
    expect(seen).toEqual([]);
  });

  test('lets people follow a link from another website', async () => {
    const { port } = await startGuarded();
    const headers = {
      host: `localhost:${port}`,
      'sec-fetch-site': 'cross-site',
      'sec-fetch-mode': 'navigate',
    };
    expect((await ask(port, headers)).status).toBe(201);
  });

  test.each([
    { host: 'evil.example', expected: /^HTTP\/1\.1 421 / },
    { host: '127.0.0.1', expected: /^HTTP\/1\.1 101 .*ping$/s },
  ])('applies to WebSockets of $host', async ({ host, expected }) => {
    const { port } = await startGuarded();
    const socket = connect({ host: '127.0.0.1', port });
    cleanUps.push(() => socket.destroy());
    let received = '';
    socket.setEncoding('utf8').on('data', (chunk: string) => {
      received += chunk;
      if (expected.test(received)) socket.destroy();
    });
    socket.write(
      `GET / HTTP/1.1\r\nhost: ${host}:${port}\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\nping`,
    );
    await new Promise((resolve) => socket.once('close', resolve));
    expect(received).toMatch(expected);
  });
});

test('the mail UI and the S3 server refuse a host name that was rebound to this machine', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'host-guard-test-'));
  cleanUps.push(() => rmSync(directory, { recursive: true, force: true }));
  const [webPort, s3Port] = [await findFreePort(), await findFreePort()];
  const mailUi = await startMailUi({
    directory: join(directory, 'ui'),
    webPort,
    logFile: join(directory, 'ui.log'),
  });
  cleanUps.push(() => mailUi.stop());
  const s3 = await startS3({ directory: join(directory, 's3'), port: s3Port, bucket: 'bucket' });
  cleanUps.push(() => s3.stop());
  for (const port of [webPort, s3Port])
    expect((await ask(port, { host: `evil.example:${port}` })).status).toBe(421);
  expect((await ask(webPort, { host: `localhost:${webPort}` }, { path: '/api/email' })).body).toBe('[]');
});

test('a server behind a guard has an address that cannot be guessed, where the system has more than one', () => {
  expect(pickLoopbackAddress('darwin')).toBe('127.0.0.1');
  const found = new Set(Array.from({ length: 20 }, () => pickLoopbackAddress('linux')));
  expect(found.size).toBeGreaterThan(15);
  for (const address of found) expect(address).toMatch(/^127\.\d+\.\d+\.\d+$/);
});
