import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { findSchemaError } from './event-schema.ts';

export interface ReceivedWebhook {
  path: string;
  headers: IncomingHttpHeaders;
  /** Exactly as sent: signatures are over it. */
  body: string;
  receivedAt: Date;
}

type Answer = (request: IncomingMessage, response: ServerResponse, attempt: number) => void;

/** A receiver of webhooks on 127.0.0.1 that keeps what it got and answers 200, or what a test tells it to. */
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

  /** @throws Error where something it got does not fit the schema served for its event type. */
  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
    const misfits = this.received.flatMap(({ body, headers }) =>
      headers['webhook-id'] ? (findSchemaError(body) ?? []) : [],
    );
    if (misfits.length > 0) throw new Error(`No event as described: ${misfits.join('\n')}`);
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    this.received.push({ path: request.url ?? '', headers: request.headers, body, receivedAt: new Date() });
    this.#answer(request, response, this.received.length);
  }
}
