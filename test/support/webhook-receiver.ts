import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { findSchemaError } from './event-schema.ts';

export interface ReceivedWebhook {
  path: string;
  headers: IncomingHttpHeaders;
  /** Unchanged, since signatures cover it. */
  body: string;
  receivedAt: Date;
}

type Answer = (request: IncomingMessage, response: ServerResponse, attempt: number) => void;

/** A webhook receiver on 127.0.0.1 that stores requests and responds with 200, or as a test sets. */
export class WebhookReceiver {
  readonly received: ReceivedWebhook[] = [];
  readonly #server = createServer((request, response) => void this.#receive(request, response));
  #answer: Answer = (_request, response) => response.writeHead(200).end();

  /** @param answer called for each request with its number, from 1; it may also hang, reset or redirect. */
  answerWith(answer: Answer): void {
    this.#answer = answer;
  }

  async start(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    return this.url;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/hook`;
  }

  /** @throws Error if a webhook does not match the schema of its event type. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
    const misfits = this.received.flatMap(({ body, headers }) =>
      headers['webhook-id'] ? (findSchemaError(body) ?? []) : [],
    );
    if (misfits.length > 0) throw new Error(`Webhooks do not match their schemas: ${misfits.join('\n')}`);
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    this.received.push({ path: request.url ?? '', headers: request.headers, body, receivedAt: new Date() });
    this.#answer(request, response, this.received.length);
  }
}
