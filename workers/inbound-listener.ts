import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { Histogram, type Registry } from 'prom-client';
import {
  SMTPServer,
  type SMTPServerDataStream,
  type SMTPServerEnvelope,
  type SMTPServerOptions,
  type SMTPServerSession,
} from 'smtp-server';
import type { AcceptedMail, InboundRoute } from '../domain/inbound/accepted-mail.ts';
import type { ReceiptService } from '../domain/inbound/receipt.service.ts';
import { isUsageLimitExceeded } from '../domain/usage/limit-errors.ts';
import type { Config } from '../platform/config.ts';
import { databaseFailure } from '../platform/database/failures.ts';
import { newId } from '../platform/ids.ts';
import { createSemaphore, type Semaphore } from '../platform/semaphore.ts';
import type { Storage, StoredObject } from '../platform/storage.ts';
import type { Composition } from './composition.ts';
import { exceedsConnectionLimit } from './inbound-limits.ts';
import { ClientDisconnectedError, drain, inspectMessage, SmtpError } from './inbound-message.ts';

export type InboundListenerConfig = Pick<
  Config,
  | 'MAIL_DOMAIN'
  | 'INBOUND_SMTP_HOST'
  | 'INBOUND_SMTP_PORT'
  | 'INBOUND_SMTP_HOSTNAME'
  | 'INBOUND_SMTP_TLS_KEY_FILE'
  | 'INBOUND_SMTP_TLS_CERT_FILE'
  | 'INBOUND_SMTP_MAX_CONNECTIONS'
  | 'INBOUND_SMTP_MAX_CONNECTIONS_PER_IP'
  | 'INBOUND_MAX_SIZE_BYTES'
>;

export interface InboundListenerOptions {
  config: InboundListenerConfig;
  storage: Pick<Storage, 'putStream' | 'delete'>;
  receipts: Pick<ReceiptService, 'resolve'> & { commit(mail: AcceptedMail): Promise<unknown> };
  logger: Logger;
  /** Told of each message how it ended, and how long that took from the first byte of its data. */
  onReply?: (outcome: InboundOutcome, seconds: number) => void;
  /** How many messages over 1 MiB are taken in at once: each holds up to 15 MiB until storage has them. */
  largeMessageSlots?: Semaphore;
  /** How long such a message is kept waiting for its turn. */
  largeMessageTimeoutMs?: number;
}

/** What a client was answered: it is ours; never come again (5xx); come again later (4xx). */
export type InboundOutcome = 'accepted' | 'refused' | 'deferred';

export interface InboundListener {
  /** The port it listens on. */
  port: number;
  /** Takes no more mail, lets what is being received end (10 s at most), then hangs up. */
  close(): Promise<void>;
}

const MAX_RECIPIENTS = 100;
/** RFC 5321 section 4.5.3.2.7: a server waits at least 5 minutes for the next command. */
const IDLE_TIMEOUT_MS = 300_000;
const CLOSE_GRACE_MS = 10_000;
const MAX_CONCURRENT_LARGE_MESSAGES = 16;
/** Well below the time a client waits for a server to read on (RFC 5321 section 4.5.3.2.5: 3 minutes). */
const LARGE_MESSAGE_TIMEOUT_MS = 60_000;

/**
 * Listens for mail from other servers (RFC 5321). 250 after the data means: the bytes are in storage, the receipt and
 * the start of its workflow are committed. Everything short of that is a 4xx or 5xx and leaves nothing behind.
 *
 * @throws Error when the address cannot be bound, or the certificate not read.
 */
export async function startInboundListener(given: InboundListenerOptions): Promise<InboundListener> {
  const options = { largeMessageSlots: createSemaphore(MAX_CONCURRENT_LARGE_MESSAGES), ...given };
  const { config, logger } = options;
  const routes = new WeakMap<SMTPServerEnvelope, Map<string, InboundRoute>>();
  const inFlight = new Set<Promise<void>>();
  const server = new SMTPServer({
    ...(await serverOptions(config)),
    onConnect({ remoteAddress }, done) {
      const most = config.INBOUND_SMTP_MAX_CONNECTIONS_PER_IP;
      if (exceedsConnectionLimit(server.connections, remoteAddress, most))
        done(new SmtpError(421, '4.7.0 Too many connections from your address, try again later'));
      else done();
    },
    onRcptTo({ address }, session, done) {
      const { envelope } = session;
      const sender = envelope.mailFrom ? envelope.mailFrom.address : '';
      const others = routes.get(envelope) ?? new Map<string, InboundRoute>();
      resolveRecipient(options, address.toLowerCase(), { sender, others: [...others.values()] }).then(
        (route) => {
          routes.set(envelope, others.set(address.toLowerCase(), route));
          done();
        },
        done,
      );
    },
    onData(stream, session, done) {
      const startedAt = performance.now();
      const answered = (outcome: InboundOutcome) =>
        options.onReply?.(outcome, (performance.now() - startedAt) / 1000);
      const received = receiveMail(options, stream, session, routes.get(session.envelope) ?? new Map())
        .then(
          (id) => {
            answered('accepted');
            done(null, `2.0.0 Ok: queued as ${id}`);
          },
          (error: SmtpError) => {
            answered(error.responseCode >= 500 ? 'refused' : 'deferred');
            done(error);
          },
        )
        .finally(() => inFlight.delete(received));
      inFlight.add(received);
    },
  });
  // Connections that break are their clients' affair; without a listener they would end the process.
  server.on('error', (error) => logger.debug({ err: error }, 'inbound connection failed'));
  server.listen(config.INBOUND_SMTP_PORT, config.INBOUND_SMTP_HOST);
  await once(server.server, 'listening');
  const { port } = server.server.address() as AddressInfo;
  logger.info({ host: config.INBOUND_SMTP_HOST, port }, 'inbound SMTP listens');
  return { port, close: () => closeServer(server, inFlight) };
}

/** The listener as a worker process composes it. */
export function startInboundSmtp({
  config,
  logger,
  storage,
  services: { receipts },
  registry,
}: Pick<Composition, 'config' | 'logger' | 'storage' | 'services'> & {
  registry: Registry;
}): Promise<InboundListener> {
  const duration = new Histogram({
    name: 'agent_email_inbound_accept_seconds',
    help: 'From the first byte of a mail to the answer: accepted means stored and committed.',
    labelNames: ['outcome'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  const onAnswered = (outcome: InboundOutcome, seconds: number) => duration.observe({ outcome }, seconds);
  return startInboundListener({ config, storage, receipts, logger, onReply: onAnswered });
}

async function serverOptions(config: InboundListenerConfig): Promise<SMTPServerOptions> {
  const { INBOUND_SMTP_TLS_KEY_FILE: keyFile, INBOUND_SMTP_TLS_CERT_FILE: certFile } = config;
  const certificate =
    keyFile && certFile ? { key: await readFile(keyFile), cert: await readFile(certFile) } : {};
  return {
    ...certificate,
    name: config.INBOUND_SMTP_HOSTNAME ?? config.MAIL_DOMAIN,
    size: config.INBOUND_MAX_SIZE_BYTES,
    maxClients: config.INBOUND_SMTP_MAX_CONNECTIONS,
    maxRecipients: MAX_RECIPIENTS,
    socketTimeout: IDLE_TIMEOUT_MS,
    closeTimeout: CLOSE_GRACE_MS,
    disabledCommands: keyFile && certFile ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    logger: false,
  };
}

/**
 * @throws SmtpRefusal 550 where nobody has the address (or it is a return path we did not sign) or its owner blocks the
 * sender, 452 where its owner may receive no more for now, 451 where we cannot tell.
 */
async function resolveRecipient(
  { receipts, logger }: InboundListenerOptions,
  address: string,
  { sender, others }: { sender: string; others: InboundRoute[] },
): Promise<InboundRoute> {
  const route = await receipts.resolve(address, sender, others).catch((error: unknown) => {
    logger.error({ err: error }, 'recipient could not be looked up');
    throw temporaryFailure();
  });
  if (route === 'blocked') throw new SmtpError(550, '5.7.1 The recipient takes no mail from you');
  if (route === 'unknown') throw new SmtpError(550, '5.1.1 No such mailbox here');
  if (route.kind === 'full') throw receiveLimitReached();
  return route;
}

/**
 * @returns the transaction's id.
 * @throws SmtpRefusal; storage and database are then as they were, but for an object that was stored when the database
 * was lost.
 */
async function receiveMail(
  options: InboundListenerOptions & { largeMessageSlots: Semaphore },
  stream: SMTPServerDataStream,
  session: SMTPServerSession,
  routes: Map<string, InboundRoute>,
): Promise<string> {
  const { receipts, storage, logger } = options;
  const { envelope } = session;
  const id = newId('receipt');
  const receivedAt = new Date();
  const rawKey = `raw/${receivedAt.toISOString().slice(0, 10).replaceAll('-', '/')}/${id}.eml`;
  const recipients = envelope.rcptTo.flatMap(({ address }) => {
    const route = routes.get(address.toLowerCase());
    return route ? [{ address: address.toLowerCase(), route }] : [];
  });
  try {
    const stored = await storeMessage(options, stream, rawKey);
    const kept = await receipts.commit({
      ...stored,
      rawKey,
      mailFrom: envelope.mailFrom ? envelope.mailFrom.address : '',
      clientIp: session.remoteAddress,
      helo: session.hostNameAppearsAs || null,
      tls: session.secure,
      receivedAt,
      recipients,
    });
    // Nobody's, to an address anybody may write to (`keepUnattributed`): what is lost is no mail of ours.
    if (kept === 0) await storage.delete(rawKey).catch(() => undefined);
    logger.info(
      { transaction: id, sizeBytes: stored.sizeBytes, recipients: recipients.length, kept },
      'mail accepted',
    );
    return id;
  } catch (error) {
    // Where the database was lost the commit may have happened, and a receipt needs the object.
    if (databaseFailure(error)?.code === 'unavailable')
      logger.warn({ rawKey }, 'an object is left, since it may have a receipt');
    else
      await storage.delete(rawKey).catch((failure: unknown) => {
        logger.warn({ err: failure, rawKey }, 'an object was left behind');
      });
    if (error instanceof SmtpError) throw error;
    if (isUsageLimitExceeded(error)) throw receiveLimitReached();
    // Strangers must not be able to raise errors here.
    if (error instanceof ClientDisconnectedError) logger.info({ transaction: id }, error.message);
    else logger.error({ err: error, transaction: id }, 'mail could not be accepted');
    throw temporaryFailure();
  }
}

async function storeMessage(
  options: InboundListenerOptions & { largeMessageSlots: Semaphore },
  stream: SMTPServerDataStream,
  rawKey: string,
): Promise<StoredObject> {
  const { storage, config, largeMessageSlots, largeMessageTimeoutMs = LARGE_MESSAGE_TIMEOUT_MS } = options;
  const ended = new AbortController();
  let release = () => {};
  let clientLeft: ClientDisconnectedError | undefined;
  const inspection = inspectMessage(config.INBOUND_MAX_SIZE_BYTES, async () => {
    const timeout = AbortSignal.timeout(largeMessageTimeoutMs);
    release = await largeMessageSlots.acquire(AbortSignal.any([ended.signal, timeout]));
  });
  // A client that hangs up in the middle must fail the upload, not end it.
  stream.on('error', (error) => {
    clientLeft = new ClientDisconnectedError(error);
    ended.abort();
    inspection.stream.destroy(error);
  });
  // Storage hears of a failure while it reads; after it gave up nobody would, which ends the process.
  inspection.stream.on('error', () => {});
  stream.pipe(inspection.stream);
  try {
    return await storage.putStream(rawKey, inspection.stream, { contentType: 'message/rfc822' });
  } catch (error) {
    // Storage names no cause for the failure of its source; a client may also leave after storage failed.
    const reason = inspection.refusal ?? clientLeft ?? error;
    stream.unpipe();
    await drain(stream, config.INBOUND_MAX_SIZE_BYTES);
    throw reason;
  } finally {
    ended.abort();
    release();
  }
}

/** The sender's server keeps the mail and comes again, for about 5 days (RFC 5321 section 4.5.4.1). */
function receiveLimitReached(): SmtpError {
  return new SmtpError(452, '4.2.2 The recipient has used up the mail it may receive, try again later');
}

function temporaryFailure(): SmtpError {
  return new SmtpError(451, '4.3.0 Temporary failure, try again later');
}

async function closeServer(server: SMTPServer, inFlight: ReadonlySet<Promise<void>>): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const timer = AbortSignal.timeout(CLOSE_GRACE_MS);
  await Promise.race([Promise.all(inFlight), once(timer, 'abort')]);
  for (const connection of server.connections) {
    connection.send(421, '4.3.2 Shutting down');
    connection.close();
  }
  await closed;
}
