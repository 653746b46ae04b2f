import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import type { Duplex } from 'node:stream';

export interface HostGuardOptions {
  /** The port that browsers use, on 127.0.0.1. */
  port: number;
  upstream: { host: string; port: number };
  /** Sent to the upstream with every request, for example credentials that only this process knows. */
  headers?: Record<string, string>;
}

export interface HostGuard {
  stop(): Promise<void>;
}

/**
 * A reverse proxy for a web page without authentication. It passes only requests that a person's own browser tab makes: a
 * website can let its host name resolve to 127.0.0.1 (DNS rebinding) and read what this machine serves, and can send
 * requests to 127.0.0.1 from a page that is open in the browser.
 */
export async function startHostGuard(options: HostGuardOptions): Promise<HostGuard> {
  const upgraded = new Set<Duplex>();
  const server = createServer((incoming, response) => {
    const refusal = findRefusal(incoming, options.port);
    if (refusal)
      response.writeHead(refusal.status, { 'content-type': 'text/plain' }).end(`${refusal.reason}\n`);
    else forward(options, incoming, response);
  });
  server.on('upgrade', (incoming, socket, head) => {
    const refusal = findRefusal(incoming, options.port);
    if (refusal) socket.end(`HTTP/1.1 ${refusal.status} Refused\r\nconnection: close\r\n\r\n`);
    else {
      upgraded.add(socket);
      socket.on('close', () => upgraded.delete(socket));
      forwardUpgrade(options, incoming, socket, head);
    }
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, '127.0.0.1', resolve);
  });
  return {
    stop: () => {
      for (const socket of upgraded) socket.destroy();
      return closeServer(server);
    },
  };
}

export interface RequestRefusal {
  status: 403 | 421;
  reason: string;
}

/** Returns why a request does not come from a page that this machine serves at `port`, or undefined. */
export function findRefusal(
  { headers }: Pick<IncomingMessage, 'headers'>,
  port: number,
): RequestRefusal | undefined {
  const hosts = ['127.0.0.1', 'localhost', '[::1]'].map((name) => `${name}:${port}`);
  if (!hosts.includes(headers.host?.toLowerCase() ?? ''))
    return { status: 421, reason: `Unknown host. Use http://${hosts[0]}.` };
  const { origin } = headers;
  if (origin !== undefined && !hosts.some((host) => origin === `http://${host}`))
    return { status: 403, reason: 'Requests from other websites are refused.' };
  // Browsers send no Origin with images and scripts. Following a link is allowed.
  const site = headers['sec-fetch-site'];
  const isForeign = site === 'cross-site' || site === 'same-site';
  if (isForeign && headers['sec-fetch-mode'] !== 'navigate')
    return { status: 403, reason: 'Requests from other websites are refused.' };
  return undefined;
}

function forward(
  { upstream, headers }: HostGuardOptions,
  incoming: IncomingMessage,
  response: ServerResponse,
): void {
  const { method, url: path } = incoming;
  const outgoing = request(
    { ...upstream, method, path, headers: { ...incoming.headers, ...headers } },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    },
  );
  outgoing.on('error', () => {
    if (response.headersSent) response.destroy();
    else response.writeHead(502).end();
  });
  response.on('close', () => outgoing.destroy());
  incoming.pipe(outgoing);
}

/** WebSockets: passes the request on as it is, then both directions. */
function forwardUpgrade(
  { upstream, headers }: HostGuardOptions,
  incoming: IncomingMessage,
  socket: Duplex,
  head: Buffer,
): void {
  const target = connect(upstream, () => {
    const fields = Object.entries({ ...incoming.headers, ...headers }).map(
      ([name, value]) => `${name}: ${value}`,
    );
    target.write([`${incoming.method} ${incoming.url} HTTP/1.1`, ...fields, '', ''].join('\r\n'));
    target.write(head);
    target.pipe(socket);
    socket.pipe(target);
  });
  target.on('error', () => socket.destroy());
  socket.on('error', () => target.destroy());
  socket.on('close', () => target.destroy());
  target.on('close', () => socket.destroy());
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}
