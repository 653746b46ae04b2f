import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';

/** A relay that receives whole messages, but replies to the final dot only when a test says so. */
export class SlowRelay {
  /** Messages whose final dot has arrived, with or without a reply. */
  complete = 0;
  #holding = false;
  readonly #waiting: Socket[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server = createServer((socket) => this.#converse(socket));

  async start(): Promise<number> {
    await new Promise<void>((done) => this.#server.listen(0, '127.0.0.1', done));
    return (this.#server.address() as AddressInfo).port;
  }

  /** Holds the replies to final dots from now on. */
  hold(): void {
    this.#holding = true;
  }

  /** Sends all held replies, and later ones immediately. */
  release(): void {
    this.#holding = false;
    for (const socket of this.#waiting.splice(0)) socket.write('250 2.0.0 queued as late\r\n');
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((done) => this.#server.close(done));
  }

  #converse(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    let inData = false;
    let pending = '';
    socket.setEncoding('latin1').write('220 slow.relay ESMTP\r\n');
    socket.on('data', (chunk: string) => {
      pending += chunk;
      for (let end = pending.indexOf('\r\n'); end >= 0; end = pending.indexOf('\r\n')) {
        const line = pending.slice(0, end);
        pending = pending.slice(end + 2);
        if (inData && line !== '.') continue;
        if (inData) {
          inData = false;
          this.#finished(socket);
        } else if (/^DATA/i.test(line)) {
          inData = true;
          socket.write('354 go ahead\r\n');
        } else socket.write(/^QUIT/i.test(line) ? '221 bye\r\n' : '250 ok\r\n');
      }
    });
  }

  #finished(socket: Socket): void {
    this.complete += 1;
    if (this.#holding) this.#waiting.push(socket);
    else socket.write('250 2.0.0 queued as prompt\r\n');
  }
}
