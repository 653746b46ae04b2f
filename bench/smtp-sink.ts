import { SMTPServer } from 'smtp-server';

const HEAD_BYTES = 4096;

export interface BenchSink {
  port: number;
  received(): number;
  stop(): Promise<void>;
}

/**
 * A relay that accepts and discards everything. It offers no DSN, so deliveries are not tracked.
 *
 * @param onAccepted called with the first 4 KiB of each message when the relay accepts it.
 */
export async function startSmtpSink(onAccepted?: (head: string) => void): Promise<BenchSink> {
  let received = 0;
  const server = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    logger: false,
    maxClients: 500,
    onData(stream, _session, done) {
      let head = '';
      stream.on('data', (chunk: Buffer) => {
        if (head.length < HEAD_BYTES) head += chunk.toString('latin1', 0, HEAD_BYTES);
      });
      stream.once('end', () => {
        received += 1;
        onAccepted?.(head);
        done(null, `2.0.0 queued as ${received}`);
      });
    },
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.server.address();
  if (typeof address !== 'object' || address === null) throw new Error('The sink has no port');
  return {
    port: address.port,
    received: () => received,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
