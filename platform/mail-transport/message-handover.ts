import { Readable } from 'node:stream';
import type { Transmission } from './mail-transport.ts';

/**
 * Streams the stored message into an SMTP connection and records whether it may be resent: nodemailer writes the final dot
 * only after this stream has ended, so until then the relay cannot have accepted the message.
 */
export interface MessageHandover {
  /** Never throws. A second call returns a failing stream, because one transmission transfers one message. */
  openStream(): Readable;
  /** True once the last byte has been passed to the connection: the relay may have received the final dot. */
  readonly completed: boolean;
}

export function createMessageHandover({
  openRaw,
  sizeBytes,
}: Pick<Transmission, 'openRaw' | 'sizeBytes'>): MessageHandover {
  let opened = false;
  let completed = false;

  async function* read(): AsyncGenerator<Buffer> {
    if (opened) throw new Error('The message was already transferred');
    opened = true;
    let readBytes = 0;
    for await (const chunk of await openRaw()) {
      readBytes += chunk.length;
      yield chunk;
    }
    // A storage connection that ends early looks like the end of the message. Never send a truncated message.
    if (readBytes !== sizeBytes) {
      throw new Error(`The stored message has ${readBytes} bytes; expected ${sizeBytes}`);
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
