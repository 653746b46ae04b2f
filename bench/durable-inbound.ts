import { randomUUID } from 'node:crypto';
import { buffer } from 'node:stream/consumers';
import { Client, Connection } from '@temporalio/client';
import { simpleParser } from 'mailparser';
import pg from 'pg';
import { SMTPServer } from 'smtp-server';
import { loadConfig } from '../platform/config.ts';
import { createStorage } from '../platform/storage.ts';

/**
 * The baseline of a durable service: before it replies 250, it parses the message, puts its bytes to the same S3
 * server, commits a row to the same PostgreSQL and starts a bare workflow on the same Temporal.
 */
const config = loadConfig();
const storage = createStorage(config);
const database = new pg.Pool({ connectionString: process.argv[2], max: 10 });
await database.query('create table if not exists bare_mail (id text primary key, subject text, body text)');
const connection = await Connection.connect({ address: config.TEMPORAL_ADDRESS });
const client = new Client({ connection });

async function receive(raw: Buffer): Promise<void> {
  const id = randomUUID();
  const mail = await simpleParser(raw);
  await storage.putBytes(`bare/${id}.eml`, raw, 'message/rfc822');
  await database.query('insert into bare_mail (id, subject, body) values ($1, $2, $3)', [
    id,
    mail.subject ?? '',
    mail.text ?? '',
  ]);
  await client.workflow.start('bareReceive', { taskQueue: 'bare', workflowId: id, args: [{ id }] });
}

const server = new SMTPServer({
  disabledCommands: ['AUTH', 'STARTTLS'],
  logger: false,
  maxClients: 500,
  onData(stream, _session, done) {
    buffer(stream)
      .then(receive)
      .then(() => done(), done);
  },
});
server.listen(0, '127.0.0.1', () => {
  const address = server.server.address();
  if (typeof address === 'object' && address !== null) process.send?.(address.port);
});
process.once('SIGTERM', () => server.close(() => process.exit(0)));
