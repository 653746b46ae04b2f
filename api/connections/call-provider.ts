import { IncomingMessage, type OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Provider } from 'oidc-provider';

/** What the library needs to know of a request. */
export type IncomingCall = Pick<FastifyRequest, 'method' | 'url' | 'headers' | 'ip'>;

/** What the authorization server answers. */
export interface ProviderAnswer {
  status: number;
  headers: OutgoingHttpHeaders;
  body: string;
}

/** Captures the response instead of sending it. The library passes the whole body to `end`. */
class CapturedResponse extends ServerResponse {
  text = '';
  override end(...[body]: unknown[]): this {
    if (typeof body === 'string' || body instanceof Uint8Array)
      this.text = Buffer.from(body).toString('utf8');
    return super.end();
  }
}

/** A request and a response for the library, apart from those of the connection, whose answers pass the hooks of the service. */
export function createExchange(
  { issuer }: Provider,
  { method, url, headers, ip }: IncomingCall,
  body = '',
): { request: IncomingMessage; response: CapturedResponse } {
  const { host, protocol } = new URL(issuer);
  const socket = new Socket();
  const request = Object.assign(new IncomingMessage(socket), {
    method,
    url,
    clientIp: ip,
    headers: {
      ...headers,
      // The library builds URLs from these headers, so they come from PUBLIC_URL and not from the client.
      host,
      'x-forwarded-host': host,
      'x-forwarded-proto': protocol.slice(0, -1),
      'content-length': String(Buffer.byteLength(body)),
    },
  });
  request.push(body);
  request.push(null);
  return { request, response: new CapturedResponse(request) };
}

/**
 * Lets the library answer a request, whose body has been read.
 *
 * @throws what kept the library from an answer, for example an error of the database.
 */
export async function callProvider(
  provider: Provider,
  incoming: IncomingCall,
  body?: string,
): Promise<ProviderAnswer> {
  const { request, response } = createExchange(provider, incoming, body);
  await provider.callback()(request, response);
  if (request.failure) throw request.failure;
  return {
    status: response.statusCode,
    headers: response.getHeaders(),
    body: response.text,
  };
}

/** Sends what the library answers. Its session is not used, so that its cookie does not reach browsers. */
export function sendAnswer(reply: FastifyReply, { status, headers, body }: ProviderAnswer): FastifyReply {
  const { 'content-length': _, 'set-cookie': cookies, ...others } = headers;
  const kept = [cookies ?? []].flat().filter((cookie) => !String(cookie).startsWith('connect_session'));
  if (kept.length > 0) reply.header('set-cookie', kept);
  return reply.code(status).headers(others).send(body);
}
