import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

export interface ReceivedRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
  at: number;
}

export type Reply = (response: ServerResponse, request: ReceivedRequest, number: number) => unknown;

/** A server of the tests that answers as it is told: what services and proxies do when they fail. */
export class ScriptedServer implements AsyncDisposable {
  readonly received: ReceivedRequest[] = [];
  readonly #reply: Reply;
  readonly #server = createServer((request, response) => void this.#receive(request, response));

  /** @param reply is called for each request with its number, from 1. */
  private constructor(reply: Reply) {
    this.#reply = reply;
  }

  static async start(reply: Reply): Promise<ScriptedServer> {
    const server = new ScriptedServer(reply);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request;
    const received = { method, url, headers, body: await text(request), at: performance.now() };
    this.received.push(received);
    await this.#reply(response, received, this.received.length);
  }
}

export function answerJson(response: ServerResponse, status: number, body: unknown, headers = {}): void {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  response.writeHead(status, { 'content-type': type, 'x-request-id': 'req_test', ...headers });
  response.end(JSON.stringify(body));
}

export const problem = (status: number, code: string, others: object = {}) => ({
  type: `http://localhost/docs/errors#${code}`,
  title: code,
  status,
  detail: `Detail of ${code}.`,
  code,
  request_id: 'req_problem',
  fix: `Fix of ${code}.`,
  ...others,
});
