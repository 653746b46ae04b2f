import type { Readable } from 'node:stream';
import { SMTPServer, type SMTPServerAddress, type SMTPServerSession } from 'smtp-server';
import type { Log } from './child-process.ts';
import { smtpDate } from './delivery-reports.ts';
import { createDelivery } from './mail-delivery.ts';
import { createMailSpool, type MailSpool, type SpooledMail, type SpooledRecipient } from './mail-spool.ts';
import { createRelayQueue, isServiceAddress, newMessageId, type RelayQueue } from './relay-queue.ts';
import { simulateRefusal } from './simulated-outcome.ts';

const HOSTNAME = 'relay.localhost';
const MAX_MAIL_BYTES = 50 * 1024 * 1024;

export interface RelayOptions {
  port: number;
  /** Holds accepted messages until they are settled, also across restarts. */
  directory: string;
  /** The service's mail domain and bounce domain, whose mail goes to `inbound`. */
  serviceDomains: string[];
  inbound: { host: string; port: number };
  /** maildev's SMTP listener; undefined keeps no copies. */
  mailUi?: { smtpPort: number };
  /** Address for complaints; undefined: the envelope sender. */
  feedbackAddress?: string;
  retryDelaysMs?: number[];
  log: Log;
}

export interface Relay {
  readonly host: string;
  readonly port: number;
  /** Stops accepting mail. Unsettled messages stay in the spool for the next start. */
  stop(): Promise<void>;
}

/**
 * Starts a mail relay on 127.0.0.1 that behaves like a real MTA with DSN support (RFC 3461): it accepts mail to any
 * address, spools it until it is settled, forwards mail to the service's own domains by SMTP, simulates all other
 * mailboxes (`simulateOutcome`), and sends delivery reports to the return path.
 */
export async function startRelay(options: RelayOptions): Promise<Relay> {
  const { log, retryDelaysMs, serviceDomains, mailUi } = options;
  const spool = createMailSpool(options.directory);
  const toInbound = createDelivery({ name: 'The inbound listener', ...options.inbound, retryDelaysMs }, log);
  const toMailUi = mailUi
    ? createDelivery({ name: 'The mail UI', host: '127.0.0.1', port: mailUi.smtpPort, retryDelaysMs }, log)
    : undefined;
  const queue = createRelayQueue({
    hostname: HOSTNAME,
    spool,
    serviceDomains,
    inbound: toInbound,
    mailUi: toMailUi,
    feedbackAddress: options.feedbackAddress,
    log,
  });
  const server = createServer({ spool, queue, serviceDomains });
  await listen(server, options.port);
  server.on('error', (error: Error) => log(`Relay: ${error.message}`));
  for (const mail of spool.unfinished()) queue.start(mail);
  return {
    host: '127.0.0.1',
    port: options.port,
    async stop() {
      await new Promise<void>((resolve) => server.close(resolve));
      toInbound.close();
      toMailUi?.close();
      await queue.drained();
    },
  };
}

interface ServerParts {
  spool: MailSpool;
  queue: RelayQueue;
  serviceDomains: string[];
}

function createServer(parts: ServerParts): SMTPServer {
  return new SMTPServer({
    name: HOSTNAME,
    banner: 'agent-email development relay',
    size: MAX_MAIL_BYTES,
    authOptional: true,
    disabledCommands: ['AUTH'],
    hideSTARTTLS: true,
    // smtp-server does not announce the extension otherwise.
    hideDSN: false,
    // The replies below have enhanced status codes already.
    hideENHANCEDSTATUSCODES: true,
    closeTimeout: 2000,
    onRcptTo({ address }, _session, done) {
      const refusal = isServiceAddress(address, parts.serviceDomains) ? undefined : simulateRefusal(address);
      done(refusal && smtpError(refusal.code, refusal.message));
    },
    onData(stream, session, done) {
      accept(parts, session, stream).then((queued) => done(null, queued), done);
    },
  });
}

async function accept(
  { spool, queue }: ServerParts,
  session: SMTPServerSession,
  stream: Readable & { sizeExceeded: boolean },
): Promise<string> {
  const mail = envelopeOf(session);
  await spool.add(mail, stream).catch((error: Error) => {
    throw smtpError(451, `4.3.0 Not queued: ${error.message}`);
  });
  if (stream.sizeExceeded) {
    await spool.remove(mail.id);
    throw smtpError(552, '5.3.4 Message too large');
  }
  queue.start(mail);
  return `2.0.0 Ok: queued as ${mail.id}`;
}

function envelopeOf(session: SMTPServerSession): SpooledMail {
  const { mailFrom, rcptTo, dsn } = session.envelope;
  const id = newMessageId();
  const now = new Date();
  const sender = `${session.hostNameAppearsAs || 'unknown'} ([${session.remoteAddress}])`;
  return {
    id,
    returnPath: mailFrom ? mailFrom.address : '',
    ...(dsn?.envid ? { envelopeId: dsn.envid } : {}),
    arrivedAt: now.toISOString(),
    trace: `Received: from ${sender}\r\n by ${HOSTNAME} with ESMTP id ${id};\r\n ${smtpDate(now)}`,
    recipients: rcptTo.map(recipientOf),
    shown: true,
  };
}

function recipientOf({ address, dsn }: SMTPServerAddress): SpooledRecipient {
  return {
    address,
    ...(dsn?.notify ? { notify: dsn.notify } : {}),
    ...(dsn?.orcpt ? { originalRecipient: dsn.orcpt } : {}),
  };
}

function smtpError(responseCode: number, message: string): Error {
  return Object.assign(new Error(message), { responseCode });
}

function listen(server: SMTPServer, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject);
      resolve();
    });
  });
}
