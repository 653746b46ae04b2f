import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { generate } from 'selfsigned';
import { createEgress } from '../../platform/egress/egress.ts';
import { createGuardedFetch, type GuardedFetch } from '../../platform/egress/guarded-fetch.ts';

/** The public address of the tests. All others are internal. */
const PUBLIC = '127.0.0.1';
export const INTERNAL: Record<string, string> = {
  'loopback.example': '127.0.0.2',
  'private.example': '10.0.0.1',
  'metadata.example': '169.254.169.254',
  'six.example': '::1',
};

export interface Published {
  status?: number;
  headers?: Record<string, string>;
  body: string;
}

export type ClientSite = Awaited<ReturnType<typeof startClientSite>>;

/** Serves documents over HTTPS at every address of this host, and counts the connections. */
export async function startClientSite() {
  const { private: key, cert } = await generate([{ name: 'commonName', value: 'host.example' }], {
    keySize: 2048,
    extensions: [
      {
        name: 'subjectAltName',
        altNames: ['host.example', ...Object.keys(INTERNAL)].map((value) => ({ type: 2, value })),
      },
    ],
  } as never);
  const documents = new Map<string, Published>();
  const requests: string[] = [];
  let connections = 0;
  let answers = Promise.resolve();
  const server: Server = createServer({ key, cert }, async (request, response) => {
    requests.push(request.url ?? '');
    await answers;
    const {
      status = 200,
      headers = {},
      body,
    } = documents.get(request.url ?? '') ?? { status: 404, body: '' };
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body);
  });
  server.on('connection', () => {
    connections += 1;
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    cert,
    port,
    requests,
    documents,
    connections: () => connections,
    /** Withholds all answers, so that requests are in progress at the same time. The returned function sends them. */
    holdAnswers(): () => void {
      const { promise, resolve } = Promise.withResolvers<void>();
      answers = promise;
      return resolve;
    },
    origin: `https://host.example:${port}`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** HTTP within the limits of the service, with a resolver and a certificate of the tests: of the site, one address is public. */
export const fetchFrom = ({ cert }: Pick<ClientSite, 'cert'>): GuardedFetch =>
  createGuardedFetch(
    createEgress({
      allow: [`${PUBLIC}/32`],
      allowPorts: 'any',
      requireHttps: true,
      certificateAuthorities: [cert],
      lookup: async (host) => [host === 'host.example' ? PUBLIC : (INTERNAL[host] ?? '192.0.2.1')],
    }),
  );
