import { connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

/** A request over its own connection whose body the test sends in parts. */
export interface OpenRequest {
  readonly socket: Socket;
  /** Everything received so far. */
  readonly text: string;
  readonly closed: boolean;
  write(part: string | Buffer): void;
  /** The status of the response, once its head has arrived. */
  status(): Promise<number>;
  close(): void;
}

export interface OpenRequestOptions {
  token?: string;
  headers?: Record<string, string | number>;
  method?: string;
}

/** @param url its path is requested; no byte of the body is sent. */
export function openRequest(
  url: string,
  { token, headers = {}, method = 'POST' }: OpenRequestOptions = {},
): OpenRequest {
  const { hostname, port, pathname, search } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = '';
  let closed = false;
  socket.on('error', () => undefined);
  socket.setEncoding('latin1').on('data', (part: string) => {
    text += part;
  });
  socket.once('close', () => {
    closed = true;
  });
  const fields = {
    host: 'api.test',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...headers,
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`${method} ${pathname}${search} HTTP/1.1\r\n${lines.join('')}\r\n`);
  return {
    socket,
    get text() {
      return text;
    },
    get closed() {
      return closed;
    },
    write: (part) => void socket.write(part),
    async status() {
      for (;;) {
        const [, status] = /^HTTP\/1\.1 (\d{3})/.exec(text) ?? [];
        if (status !== undefined) return Number(status);
        if (closed) throw new Error('The connection was closed without a response');
        await pause(5);
      }
    },
    close: () => void socket.destroy(),
  };
}
