import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

export interface ScanRequest {
  path: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

/** A fake rspamd whose responses a test sets. */
export interface RspamdServer {
  url: string;
  requests: ScanRequest[];
  /** `null` never responds. */
  answerWith(answer: { status?: number; body: unknown } | null): void;
  stop(): Promise<void>;
}

export async function startRspamdServer(): Promise<RspamdServer> {
  const requests: ScanRequest[] = [];
  let answer: { status?: number; body: unknown } | null = {
    body: { action: 'no action', score: 0.5, required_score: 15, is_skipped: false, symbols: {} },
  };
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      requests.push({ path: request.url ?? '', headers: request.headers, body });
      if (answer === null) return;
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
    });
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    answerWith(next) {
      answer = next;
    },
    async stop() {
      server.closeAllConnections();
      await new Promise((done) => server.close(done));
    },
  };
}
