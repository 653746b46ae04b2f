import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { SMTPServer } from 'smtp-server';

export interface SinkMessage {
  mailFrom: string;
  rcptTo: string[];
  /** Exactly as sent. */
  raw: Buffer;
}

/** An SMTP server on 127.0.0.1 that stores every message and refuses the recipients that a test names. */
export class SmtpSink {
  readonly mails: SinkMessage[] = [];
  /** Recipient in lower case → the reply, e.g. `550 5.1.1 no such user`. */
  readonly refused = new Map<string, string>();
  readonly #server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['AUTH', 'STARTTLS'],
    hideDSN: false,
    onRcptTo: (address, _session, callback) => {
      const reply = this.refused.get(address.address.toLowerCase());
      if (!reply) return callback();
      const [, code = '550', message = reply] = /^(\d{3}) (.*)$/.exec(reply) ?? [];
      callback(Object.assign(new Error(message), { responseCode: Number(code) }));
    },
    onData: (stream, session, callback) => {
      buffer(stream).then(
        (raw) => {
          const { mailFrom, rcptTo } = session.envelope;
          this.mails.push({
            mailFrom: mailFrom ? mailFrom.address : '',
            rcptTo: rcptTo.map(({ address }) => address),
            raw,
          });
          callback();
        },
        (error: Error) => callback(error),
      );
    },
  });

  async start(): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', () => resolve());
    });
    return this.port;
  }

  get port(): number {
    return (this.#server.server.address() as AddressInfo).port;
  }

  stop(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()));
  }
}
