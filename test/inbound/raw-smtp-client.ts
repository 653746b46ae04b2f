import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** A line-level SMTP client, so that tests control commands, timing and disconnects. */
export class RawSmtpClient {
  readonly socket: Socket;
  #buffered = '';
  #ended = false;

  /**
   * @param target a port, or a connecting socket.
   * @param localAddress the client address that the server sees; any of 127.0.0.0/8 works.
   */
  constructor(target: number | Socket, localAddress = '127.0.0.1') {
    this.socket =
      typeof target === 'number' ? connect({ port: target, host: '127.0.0.1', localAddress }) : target;
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.#buffered += text;
    });
    this.socket.on('error', () => {});
    this.socket.on('close', () => {
      this.#ended = true;
    });
  }

  /** Connects, reads the greeting and sends EHLO. */
  static async greeted(target: number | Socket, localAddress?: string): Promise<RawSmtpClient> {
    const client = new RawSmtpClient(target, localAddress);
    await client.reply();
    await client.command('EHLO sender.test');
    return client;
  }

  /** Returns the next complete reply without its last line end, or 'closed' if the server disconnected. */
  async reply(): Promise<string> {
    for (;;) {
      const found = /^(?:\d{3}-.*\r\n)*\d{3} .*\r\n/.exec(this.#buffered);
      if (found) {
        this.#buffered = this.#buffered.slice(found[0].length);
        return found[0].trimEnd();
      }
      if (this.#ended) return 'closed';
      await this.#news();
    }
  }

  async #news(): Promise<void> {
    const seen = new AbortController();
    const { signal } = seen;
    await Promise.race([once(this.socket, 'data', { signal }), once(this.socket, 'close', { signal })]);
    seen.abort();
  }

  async command(line: string): Promise<string> {
    this.write(`${line}\r\n`);
    return this.reply();
  }

  /** Starts a transaction up to the 354 reply. */
  async startData(...recipients: string[]): Promise<string> {
    await this.command('MAIL FROM:<sender@sender.test>');
    for (const recipient of recipients) await this.command(`RCPT TO:<${recipient}>`);
    return this.command('DATA');
  }

  write(bytes: string): void {
    this.socket.write(bytes, 'latin1');
  }

  close(): void {
    this.socket.destroy();
  }
}
