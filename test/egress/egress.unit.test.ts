import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from '@jest/globals';
import {
  createEgress,
  createTargetCheck,
  type EgressOptions,
  type EgressRequest,
  readEgressOptions,
} from '../../platform/egress/egress.ts';
import { expectWithin } from '../support/expect-within.ts';
import { TIME_FACTOR } from '../support/time-factor.ts';

const CERTIFICATE = readFileSync(new URL('receiver.cert.pem', import.meta.url), 'utf8');
const KEY = readFileSync(new URL('receiver.key.pem', import.meta.url), 'utf8');
const POST: EgressRequest = {
  headers: { 'content-type': 'application/json', 'x-case': '1' },
  body: '{"grüße":true}',
  timeoutMs: 2_000 * TIME_FACTOR,
  maxResponseBytes: 65_536,
  retainBytes: 4_096,
};

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

function egress(options: Partial<EgressOptions> = {}) {
  return createEgress({ allow: ['127.0.0.0/8'], allowPorts: 'any', requireHttps: false, ...options });
}

async function listen(server: Server): Promise<{ port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUps.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

const receiver = (listener: RequestListener) => listen(createHttpServer(listener));

describe('a well-behaved receiver', () => {
  test('gets exactly the given request, on its own connection', async () => {
    const seen: unknown[] = [];
    const { port } = await receiver(async (request, response) => {
      const chunks: Buffer[] = await request.toArray();
      const { host, connection, 'x-case': own, 'content-length': length } = request.headers;
      seen.push([
        request.method,
        request.url,
        host,
        connection,
        own,
        length,
        Buffer.concat(chunks).toString(),
      ]);
      response.end('thanks');
    });

    const result = await egress().post(`http://127.0.0.1:${port}/hook?a=b#c`, POST);

    expect(result).toMatchObject({ kind: 'response', status: 200, body: 'thanks' });
    const host = `127.0.0.1:${port}`;
    expect(seen).toEqual([['POST', '/hook?a=b', host, 'close', '1', '16', POST.body]]);
  });

  test.each([
    ['120', 120_000],
    ['99999999999', 99_999_999_999_000],
    [new Date(Date.now() + 60_000).toUTCString(), 60_000],
    ['Wed, 21 Oct 2015 07:28:00 GMT', 0],
    ['soon', undefined],
    ['5 seconds', undefined],
    ['in 5', undefined],
  ])('can send Retry-After: %s', async (value, expected) => {
    const { port } = await receiver((_request, response) => {
      response.writeHead(429, { 'retry-after': value }).end();
    });
    const result = await egress().post(`http://127.0.0.1:${port}/`, POST);
    const retryAfterMs = result.kind === 'response' ? result.retryAfterMs : null;
    if (expected === undefined) expect(retryAfterMs).toBeUndefined();
    else expect(Math.abs((retryAfterMs ?? Number.NaN) - expected)).toBeLessThan(2_000 * TIME_FACTOR);
  });

  test('has its headers in the result, without cookies', async () => {
    const { port } = await receiver((_request, response) => {
      const headers = { 'X-Trace': 'a', 'set-cookie': ['session=secret', 'b=c'], link: ['a', 'b'] };
      response.writeHead(200, headers).end();
    });
    const result = await egress().post(`http://127.0.0.1:${port}/`, POST);
    expect(result).toMatchObject({ headers: { 'x-trace': 'a', link: 'a, b' } });
    expect(JSON.stringify(result)).not.toContain('secret');
  });

  test('is not followed when it redirects', async () => {
    let lookups = 0;
    const { port } = await receiver((_request, response) => {
      lookups += 1;
      response.writeHead(302, { location: `http://127.0.0.1:${port}/elsewhere` }).end();
    });
    expect(await egress().post(`http://127.0.0.1:${port}/`, POST)).toMatchObject({
      kind: 'response',
      status: 302,
    });
    expect(lookups).toBe(1);
  });

  test('is authenticated by its TLS certificate', async () => {
    const server = createHttpsServer({ cert: CERTIFICATE, key: KEY }, (_request, response) => {
      response.end('safe');
    });
    const { port } = await listen(server);
    const lookup = async () => ['127.0.0.1'];
    const trusting = egress({ lookup, certificateAuthorities: [CERTIFICATE], requireHttps: true });
    expect(await trusting.post(`https://receiver.test:${port}/`, POST)).toMatchObject({
      status: 200,
      body: 'safe',
    });
    expect(await trusting.post(`https://other.test:${port}/`, POST)).toMatchObject({
      kind: 'failed',
      error: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    expect(await egress({ lookup }).post(`https://receiver.test:${port}/`, POST)).toMatchObject({
      kind: 'failed',
      error: 'DEPTH_ZERO_SELF_SIGNED_CERT',
    });
  });
});

describe('a receiver', () => {
  test('gets a GET without body and length, and its type is returned', async () => {
    const seen: unknown[] = [];
    const { port } = await receiver((request, response) => {
      const { 'content-length': length, accept, host } = request.headers;
      seen.push([request.method, request.url, accept, length, host]);
      response.writeHead(203, { 'content-type': 'application/xml' }).end('<a/>');
    });
    const { body: _none, ...limits } = POST;
    const get = { ...limits, headers: { accept: 'text/xml', host: 'evil.test' } };
    const result = await egress().get(`http://127.0.0.1:${port}/metadata?a=b`, get);
    expect(result).toEqual({
      ...{ kind: 'response', status: 203, body: '<a/>', contentType: 'application/xml' },
      durationMs: expect.any(Number),
      headers: expect.objectContaining({ 'content-type': 'application/xml' }),
    });
    expect(seen).toEqual([['GET', '/metadata?a=b', 'text/xml', undefined, `127.0.0.1:${port}`]]);
  });

  test('that sends no type and no Retry-After has none in the result', async () => {
    const { port } = await receiver((_request, response) => response.end());
    const result = await egress().post(`http://127.0.0.1:${port}/`, POST);
    expect(Object.keys(result).sort()).toEqual(['body', 'durationMs', 'headers', 'kind', 'status']);
  });

  test.each([
    { retainBytes: 4, body: 'abcd' },
    { retainBytes: 6, body: 'abcdef' },
    { retainBytes: 9, body: 'abcdef' },
    { retainBytes: 0, body: '' },
  ])('has as much of its body returned as asked: %j', async ({ retainBytes, body }) => {
    const { port } = await receiver((_request, response) => {
      response.write('abc');
      setTimeout(() => response.end('def'), 20);
    });
    const result = await egress().post(`http://127.0.0.1:${port}/`, { ...POST, retainBytes });
    expect(result).toMatchObject({ kind: 'response', body });
  });

  test('is found by the system, and at any of its addresses', async () => {
    const { port } = await receiver((_request, response) => response.end('here'));
    const local = egress({ allow: ['127.0.0.0/8', '::1/128'] });
    expect(await local.post(`http://localhost:${port}/`, POST)).toMatchObject({ body: 'here' });
    const lookup = async () => ['127.0.0.9', '127.0.0.1'];
    expect(await egress({ lookup }).post(`http://two.test:${port}/`, POST)).toMatchObject({ body: 'here' });
  });

  test('whose failure has no code failed for an unknown reason', async () => {
    for (const failure of [new Error('broken'), null]) {
      const lookup = () => Promise.reject(failure);
      expect(await egress({ lookup }).post('http://broken.test/', POST)).toMatchObject({
        ...{ kind: 'failed', error: 'unknown' },
        durationMs: expect.any(Number),
      });
    }
  });
});

describe('a misbehaving receiver costs no more than its timeout', () => {
  const short = { ...POST, timeoutMs: 300 * TIME_FACTOR };

  test('hangs before its response', async () => {
    const { port } = await receiver(() => {});
    const result = await expectWithin(1_000, () => egress().post(`http://127.0.0.1:${port}/`, short));
    expect(result).toMatchObject({ kind: 'failed', error: 'timeout' });
  });

  test('hangs in its headers', async () => {
    const { port } = await listen(createTcpServer((socket) => socket.write('HTTP/1.1 200 OK\r\nx: ')));
    expect(await egress().post(`http://127.0.0.1:${port}/`, short)).toMatchObject({ error: 'timeout' });
  });

  test('hangs in its body: the status counts', async () => {
    const { port } = await receiver((_request, response) => {
      response.writeHead(200, { 'content-length': 100 }).write('some');
    });
    const result = await expectWithin(1_000, () => egress().post(`http://127.0.0.1:${port}/`, short));
    expect(result).toMatchObject({ kind: 'response', status: 200, body: 'some' });
  });

  test('hangs in the TLS handshake', async () => {
    const { port } = await listen(createTcpServer(() => {}));
    const result = await egress().post(`https://127.0.0.1:${port}/`, short);
    expect(result).toMatchObject({ kind: 'failed', error: 'timeout' });
  });

  test('has a name that never resolves', async () => {
    const lookup = () => new Promise<string[]>(() => {});
    const result = await egress({ lookup }).post('http://slow.test:8080/', short);
    expect(result).toMatchObject({ kind: 'failed', error: 'timeout' });
  });

  test('resets the connection', async () => {
    const { port } = await listen(
      createTcpServer((socket) => socket.on('data', () => socket.resetAndDestroy())),
    );
    expect(await egress().post(`http://127.0.0.1:${port}/`, POST)).toMatchObject({
      kind: 'failed',
      error: 'ECONNRESET',
    });
  });

  test.each([
    ['and waiting', (socket: Socket, answer: string) => socket.write(answer)],
    ['and closing', (socket: Socket, answer: string) => socket.end(answer)],
  ])('switches protocols %s', async (_how, send) => {
    const { port } = await listen(
      createTcpServer((socket) =>
        socket.once('data', () =>
          send(socket, 'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'),
        ),
      ),
    );
    expect(await egress().post(`http://127.0.0.1:${port}/`, POST)).toMatchObject({
      kind: 'failed',
      error: 'ECONNRESET',
    });
  });

  test('does not speak HTTP', async () => {
    const { port } = await listen(createTcpServer((socket) => socket.write('220 mail.test ESMTP\r\n')));
    const result = await egress().post(`http://127.0.0.1:${port}/`, POST);
    expect(result).toMatchObject({ kind: 'failed', error: expect.stringMatching(/^HPE_/) });
  });

  test('sends 10 MiB: 64 KiB are read, 4 KiB retained, and the connection is closed', async () => {
    let writtenBytes = 0;
    const closed = Promise.withResolvers<void>();
    const { port } = await receiver((_request, response) => {
      response.socket?.on('close', () => closed.resolve());
      const chunk = Buffer.alloc(16_384, 'x');
      const write = () => {
        while (writtenBytes < 10 * 1024 * 1024 && !response.destroyed) {
          writtenBytes += chunk.length;
          if (!response.write(chunk)) return;
        }
      };
      response.on('drain', write);
      write();
    });
    const result = await egress().post(`http://127.0.0.1:${port}/`, POST);
    expect(result).toMatchObject({ kind: 'response', status: 200, body: 'x'.repeat(4_096) });
    await closed.promise;
    expect(writtenBytes).toBeLessThan(10 * 1024 * 1024);
  });

  test('sends NUL and broken UTF-8', async () => {
    const { port } = await receiver((_request, response) => response.end(Buffer.from([0x61, 0, 0xff, 0x62])));
    expect(await egress().post(`http://127.0.0.1:${port}/`, POST)).toMatchObject({ body: 'a\ufffd\ufffdb' });
  });

  test('is not listening', async () => {
    const { port } = await receiver(() => {});
    for (const cleanUp of cleanUps.splice(0)) cleanUp();
    expect(await egress().post(`http://127.0.0.1:${port}/`, POST)).toMatchObject({ error: 'ECONNREFUSED' });
    const lookup = async () => [];
    expect(await egress({ lookup }).post('http://gone.test/', POST)).toMatchObject({ error: 'ENOTFOUND' });
  });
});

describe('blocked targets', () => {
  /** A lookup makes the request fail, so a blocked target was blocked before it. */
  const lookup = () => Promise.reject(Object.assign(new Error('lookup'), { code: 'ENOTFOUND' }));
  const guarded = createEgress({ allow: [], allowPorts: [], requireHttps: false, lookup });

  test.each([
    ['http://127.0.0.1/', 'loopback'],
    ['http://2130706433/', 'loopback'],
    ['http://0x7f.1/', 'loopback'],
    ['http://0x7f000001/', 'loopback'],
    ['http://017700000001/', 'loopback'],
    ['http://0177.0.0.1/', 'loopback'],
    ['http://0x7f.0x0.0x0.0x1/', 'loopback'],
    ['http://127.1/', 'loopback'],
    ['http://127.0.0.1./', 'loopback'],
    ['http://%31%32%37.0.0.1/', 'loopback'],
    ['http://0xa9fea9fe/', 'linkLocal'],
    ['http://2852039166/', 'linkLocal'],
    ['http://0251.0376.0251.0376/', 'linkLocal'],
    ['http://10.1/', 'private'],
    ['http://[::127.0.0.1]/', 'reserved'],
    ['http://[::ffff:a9fe:a9fe]/', 'linkLocal'],
    ['http://[64:ff9b::10.0.0.1]/', 'private'],
    ['http://[2002:a9fe:a9fe::1]/', 'linkLocal'],
    ['http://[fd00:ec2::254]/latest/meta-data/', 'uniqueLocal'],
    ['http://[fe80::1]/', 'linkLocal'],
    ['http://100.100.100.200/latest/meta-data/', 'carrierGradeNat'],
    ['http://168.63.129.16/metadata/instance', 'metadata'],
    ['http://192.0.0.192/latest/meta-data/', 'reserved'],
    ['http://１２７．０．０．１/', 'loopback'],
    ['http://[::1]/', 'loopback'],
    ['http://[::ffff:127.0.0.1]/', 'loopback'],
    ['http://[0:0:0:0:0:ffff:7f00:1]/', 'loopback'],
    ['http://[2002:7f00:1::]/', 'loopback'],
    ['http://[64:ff9b::a9fe:a9fe]/', 'linkLocal'],
    ['http://169.254.169.254/latest/meta-data/', 'linkLocal'],
    ['http://0/', 'unspecified'],
    ['http://user:secret@example.com/', 'credentials'],
    ['http://user@example.com/', 'credentials'],
    ['http://:secret@example.com/', 'credentials'],
    ['http://example.com:9001/', 'port 9001 is not allowed'],
    ['http://example.com:22/', 'port 22'],
    ['https://example.com:25/', 'port 25'],
    ['ftp://example.com/', 'ftp:'],
    ['file:///etc/passwd', 'file:'],
    ['javascript:alert(1)', 'javascript:'],
    ['not a url', 'is invalid'],
    ['http://', 'is invalid'],
  ])('%s', async (url, reason) => {
    const result = await guarded.post(url, POST);
    expect(result).toMatchObject({ kind: 'blocked', reason: expect.stringContaining(reason) });
  });

  test('plain http where https is required', async () => {
    const strict = createEgress({ allow: [], allowPorts: [], requireHttps: true, lookup });
    const blocked = { kind: 'blocked', reason: 'the URL is not https' };
    await expect(strict.post('http://example.com/', POST)).resolves.toEqual(blocked);
    const failed = { kind: 'failed', error: 'ENOTFOUND' };
    await expect(strict.post('https://example.com/', POST)).resolves.toMatchObject(failed);
  });

  test.each([
    [['127.0.0.1']],
    [['10.0.0.1']],
    [['::ffff:10.0.0.1']],
    [['64:ff9b::10.0.0.1']],
    [['2002:a00:1::1']],
    [['fd00:ec2::254']],
    [['0.0.0.0']],
    [['::']],
    [['169.254.169.254']],
    [['93.184.216.34', '10.0.0.1']],
    [['fd00::1', '93.184.216.34']],
  ])('a name that resolves to %j', async (addresses) => {
    const rebinding = createEgress({
      allow: [],
      allowPorts: [],
      requireHttps: false,
      lookup: async () => addresses,
    });
    const result = await rebinding.post('http://innocent.test/', POST);
    expect(result).toMatchObject({ kind: 'blocked' });
    // The customer chose the name, and must not learn its address.
    for (const address of addresses) expect(JSON.stringify(result)).not.toContain(address);
  });

  test.each([
    ['localhost', '127.0.0.1'],
    ['localhost.', '127.0.0.1'],
    ['LOCALHOST', '::1'],
    ['metadata.google.internal', '169.254.169.254'],
    ['instance-data.ec2.internal', '169.254.169.254'],
    ['127.0.0.1.nip.test', '127.0.0.1'],
  ])('an internal host: %s', async (hostname, address) => {
    const within = createEgress({
      allow: [],
      allowPorts: [],
      requireHttps: false,
      lookup: async () => [address],
    });
    expect(await within.post(`http://${hostname}/`, POST)).toMatchObject({ kind: 'blocked' });
  });

  test('the target of a redirect, whatever it responds', async () => {
    for (const status of [301, 302, 303, 307, 308]) {
      const { port } = await receiver((_request, response) => {
        response.writeHead(status, { location: 'http://169.254.169.254/latest/meta-data/' }).end('moved');
      });
      expect(await egress().post(`http://127.0.0.1:${port}/`, POST)).toMatchObject({
        kind: 'response',
        status,
        body: 'moved',
      });
    }
  });

  test('a name that changes its address is resolved only once', async () => {
    let asked = 0;
    let reached = 0;
    const { port } = await receiver((_request, response) => {
      reached += 1;
      response.end();
    });
    const lookup = async () => {
      asked += 1;
      return asked === 1 ? ['127.0.0.1'] : ['10.0.0.1'];
    };
    const once = egress({ lookup });
    expect(await once.post(`http://rebind.test:${port}/`, POST)).toMatchObject({ kind: 'response' });
    expect([asked, reached]).toEqual([1, 1]);
    expect(await once.post(`http://rebind.test:${port}/`, POST)).toMatchObject({ kind: 'blocked' });
    expect(reached).toBe(1);
  });

  test('no byte is sent before the connected address is checked', async () => {
    let receivedBytes = 0;
    const { port } = await listen(
      createTcpServer((socket) => socket.on('data', (chunk) => (receivedBytes += chunk.length))),
    );
    // The name's only address is allowed by the policy, but the kernel connects to 127.0.0.1 for it.
    const lookup = async () => ['0.0.0.0'];
    const tricked = createEgress({ allow: ['0.0.0.0/32'], allowPorts: 'any', requireHttps: false, lookup });
    for (const scheme of ['http', 'https']) {
      expect(await tricked.post(`${scheme}://zero.test:${port}/`, POST)).toMatchObject({
        kind: 'blocked',
        reason: 'the host does not have a public address',
      });
    }
    expect(receivedBytes).toBe(0);
  });
});

test('the ports that browsers refuse for HTTP are refused, even if every port is allowed', async () => {
  const find = createTargetCheck({ allow: [], allowPorts: 'any', requireHttps: false });
  const ports = Array.from({ length: 65_536 }, (_, port) => port);
  const urlOf = (port: number) => `http://receiver.example.test:${port}/`;
  const refused = ports.filter((port) => find(urlOf(port)) !== null);
  // What the fetch of Node refuses before it connects. Nothing can listen at port 0.
  const bad = [0];
  for (const port of ports.slice(0, 20_000)) if (await isBadPort(urlOf(port))) bad.push(port);
  expect(refused).toEqual(bad);
  expect(find(urlOf(25))).toBe('port 25 is not for HTTP');
  expect(await egress().post('http://127.0.0.1:6667/', POST)).toMatchObject({ kind: 'blocked' });
});

test('ports are those of HTTP, and those that the operator allows', () => {
  const find = createTargetCheck({ allow: [], allowPorts: [9000], requireHttps: false });
  const refusedOf = (port: number) => find(`http://receiver.example.test:${port}/`);
  expect([80, 443, 8080, 8443, 9000].map(refusedOf)).toEqual(Array(5).fill(null));
  expect(refusedOf(9001)).toBe('port 9001 is not allowed');
  const strict = createTargetCheck({ allow: [], allowPorts: [], requireHttps: true });
  expect(strict('https://receiver.example.test/')).toBeNull();
  expect(strict('https://[2606:4700:4700::1111]/')).toBeNull();
  expect(strict('https://[::1]/')).toContain('loopback');
});

async function isBadPort(url: string): Promise<boolean> {
  // An option of Node: nothing is connected.
  const dispatcher = {
    dispatch() {
      throw new Error('not refused');
    },
  };
  const failure = await fetch(url, { dispatcher } as RequestInit).catch(
    (error: { cause: { message: string } }) => error,
  );
  return 'cause' in failure && failure.cause.message === 'bad port';
}

describe('the settings', () => {
  test('are lists of ranges and ports', () => {
    const config = {
      NODE_ENV: 'production',
      EGRESS_ALLOW: '127.0.0.0/8, fd00::/8',
      EGRESS_ALLOW_PORTS: '9000,9001',
    } as const;
    expect(readEgressOptions(config)).toEqual({
      allow: ['127.0.0.0/8', 'fd00::/8'],
      allowPorts: [9000, 9001],
      requireHttps: true,
    });
    expect(readEgressOptions({ NODE_ENV: 'dev', EGRESS_ALLOW_PORTS: '*' })).toMatchObject({
      allowPorts: 'any',
      allow: [],
    });
    for (const ports of ['all', '9000,x', '123456', 'x9000', '*,x'])
      expect(() => readEgressOptions({ NODE_ENV: 'dev', EGRESS_ALLOW_PORTS: ports })).toThrow(
        `EGRESS_ALLOW_PORTS is not a list of ports: ${ports}`,
      );
    expect(readEgressOptions({ NODE_ENV: 'dev', EGRESS_ALLOW_PORTS: ' 9000 ,, 9001' })).toEqual({
      allow: [],
      allowPorts: [9000, 9001],
      requireHttps: false,
    });
  });
});
