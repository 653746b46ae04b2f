import { simpleParser } from 'mailparser';
import { SMTPServer } from 'smtp-server';

/** The baseline: receives and parses messages, and stores nothing. */
const server = new SMTPServer({
  disabledCommands: ['AUTH', 'STARTTLS'],
  logger: false,
  maxClients: 500,
  onData(stream, _session, done) {
    simpleParser(stream).then(() => done(), done);
  },
});
server.listen(0, '127.0.0.1', () => {
  const address = server.server.address();
  if (typeof address === 'object' && address !== null) process.send?.(address.port);
});
process.once('SIGTERM', () => server.close(() => process.exit(0)));
