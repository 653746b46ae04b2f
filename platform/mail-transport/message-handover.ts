import { Readable } from 'node:stream';
import type { Transmission } from './mail-transport.ts';

/**
 * The stored message on its way into a connection, and the one fact that decides whether it may ever be sent again:
 * nodemailer writes the final dot only after this stream ended, so before that the relay cannot have a message.
 */
export interface MessageHandover {
  /** @throws nothing; a second call yields a stream that fails, since one transmission hands over one message. */
  openStream(): Readable;
  /** True from the moment the last byte left for the connection: the final dot may have been seen. */
  readonly completed: boolean;
}

export function createMessageHandover({
  openRaw,
  sizeBytes,
}: Pick<Transmission, 'openRaw' | 'sizeBytes'>): MessageHandover {
  let opened = false;
  let completed = false;

  async function* read(): AsyncGenerator<Buffer> {
    if (opened) throw new Error('The message was handed over before');
    opened = true;
    let readBytes = 0;
    for await (const chunk of await openRaw()) {
      readBytes += chunk.length;
      yield chunk;
    }
    // A storage connection that ends early looks like the end of the message: half a mail must not be delivered.
    if (readBytes !== sizeBytes) {
      throw new Error(`The stored message has ${readBytes} bytes, ${sizeBytes} were expected`);
    }
  }

  return {
    openStream() {
      const stream = Readable.from(read(), { objectMode: false });
      // Registered before nodemailer pipes the stream, so it runs before the final dot is written.
      stream.once('end', () => {
        completed = true;
      });
      return stream;
    },
    get completed() {
      return completed;
    },
  };
}
