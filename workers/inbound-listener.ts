import { once } from 'node:events';
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
import type { AcceptedMail, InboundRoute } from '../domain/inbound/inbound-routes.ts';
import type { ReceiptService } from '../domain/inbound/receipt.service.ts';
import type { RefusalReason } from '../domain/refusals/refusal.entity.ts';
import { isUsageLimitExceeded } from '../domain/usage/limit-errors.ts';
import { createFairShare, type FairShare, type Holder, thirdOf } from '../platform/concurrency/fair-share.ts';
import type { Config } from '../platform/config.ts';
import { toDatabaseError } from '../platform/database/database-errors.ts';
import { newId } from '../platform/ids.ts';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import type { Storage, StoredObject } from '../platform/storage.ts';
import {
  type ListenerCertificate,
  readTlsCertificate,
  watchTlsCertificate,
} from '../platform/tls-certificate.ts';
import { withSpan } from '../platform/tracing/span.ts';
import { watchBuiltInRefusals } from './built-in-refusals.ts';
import type { Composition } from './composition.ts';
import type { DataRate } from './data-rate.ts';
import { exceedsConnectionLimit, largeMessageHolders, tooManyConnections } from './inbound-limits.ts';
import { limitReceipts } from './limited-receipts.ts';
import { createRefusalReports, type ReportRefusal } from './report-refusal.ts';
import { ClientDisconnectedError, receiveData, SmtpError } from './smtp-data.ts';

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
  receipts: Pick<ReceiptService, 'resolve' | 'checkSender'> & {
    commit(mail: AcceptedMail): Promise<unknown>;
  };
  logger: Logger;
  /** Called for each message with the outcome and the time since the first byte of its data. */
  onReply?: (outcome: InboundOutcome, seconds: number) => void;
  /** Called for each refused command. */
  reportRefusal?: ReportRefusal;
  /** Limits concurrent messages over 1 MiB, each of which buffers up to 15 MiB until it is stored. */
  largeMessageSlots?: Pick<FairShare, 'acquire'>;
  /** How long a large message waits for a slot. */
  largeMessageTimeoutMs?: number;
  /** How fast a client must send a message. */
  dataRate?: DataRate;
  /** How often the files of the certificate are read. */
  certificateCheckMs?: number;
  metrics?: ServiceMetrics;
}

/** The reply to the client: 250, a permanent error (5xx), or a temporary one (4xx). */
export type InboundOutcome = 'accepted' | 'refused' | 'deferred';

export interface InboundListener {
  /** The bound port. */
  port: number;
  /** Accepts no more mail, waits up to 10 s for messages in flight, then closes the connections. */
  close(): Promise<void>;
}

const MAX_RECIPIENTS = 100;
/** RFC 5321 section 4.5.3.2.7: a server waits at least 5 minutes for the next command. */
const IDLE_TIMEOUT_MS = 300_000;
const CLOSE_GRACE_MS = 10_000;
/** A slow client may hold one for half an hour, so that a reserve is left to others. */
const MAX_CONCURRENT_LARGE_MESSAGES = 16;
/** Well below the client timeout for a data block (RFC 5321 section 4.5.3.2.5: 3 minutes). */
const LARGE_MESSAGE_TIMEOUT_MS = 60_000;

/**
 * Listens for mail from other servers (RFC 5321). Replies 250 after the data only if the bytes are in storage, and the
 * receipt and its workflow start are committed. Otherwise it replies 4xx or 5xx and stores nothing.
 *
 * @throws Error if the address cannot be bound or the certificate cannot be read.
 */
export async function startInboundListener(input: InboundListenerOptions): Promise<InboundListener> {
  const options = {
    largeMessageSlots: createFairShare({
      name: 'large messages received',
      capacity: MAX_CONCURRENT_LARGE_MESSAGES,
      reserve: thirdOf(MAX_CONCURRENT_LARGE_MESSAGES),
    }),
    ...input,
  };
  const { config, logger } = options;
  const routes = new WeakMap<SMTPServerEnvelope, Map<string, InboundRoute>>();
  const inFlight = new Set<Promise<void>>();
  const builtIn = watchBuiltInRefusals(({ recipients, ...refusal }, session) => {
    const affected = recipients.map((address) => ({ address, recipient: address }));
    options.reportRefusal?.({ ...refusal, affected, session });
  });
  const certificate = await findCertificate(config);
  const server = new SMTPServer({
    ...serverOptions(config, certificate),
    onConnect(session, done) {
      const maxConnections = config.INBOUND_SMTP_MAX_CONNECTIONS_PER_IP;
      builtIn.begin(session);
      if (!exceedsConnectionLimit(server.connections, session.remoteAddress, maxConnections)) return done();
      const error = tooManyConnections();
      options.reportRefusal?.({ stage: 'connect', affected: [], sender: null, session, error });
      done(error);
    },
    onClose(session) {
      builtIn.end(session);
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
        (error: SmtpError) => {
          const affected = [{ address, recipient: address }];
          options.reportRefusal?.({ stage: 'rcpt', affected, sender, session, error });
          done(error);
        },
      );
    },
    onData(stream, session, done) {
      const startedAt = performance.now();
      const reportOutcome = (outcome: InboundOutcome) =>
        options.onReply?.(outcome, (performance.now() - startedAt) / 1000);
      const received = withSpan({ name: 'SMTP receive', kind: 'server', parent: 'root' }, () =>
        receiveMail(options, stream, session, routes.get(session.envelope) ?? new Map()),
      )
        .then(
          (id) => {
            reportOutcome('accepted');
            done(null, `2.0.0 Ok: queued as ${id}`);
          },
          (error: SmtpError) => {
            reportOutcome(error.responseCode >= 500 ? 'refused' : 'deferred');
            const { rcptTo, mailFrom } = session.envelope;
            const affected = rcptTo.map(({ address }) => ({ address, recipient: address }));
            const sender = mailFrom ? mailFrom.address : '';
            options.reportRefusal?.({ stage: 'data', affected, sender, session, error });
            done(error);
          },
        )
        .finally(() => inFlight.delete(received));
      inFlight.add(received);
    },
  });
  server.logger = builtIn.logger;
  // Broken connections are not errors of the service, but an unhandled error event would end the process.
  server.on('error', (error) => logger.debug({ err: error }, 'inbound connection failed'));
  server.listen(config.INBOUND_SMTP_PORT, config.INBOUND_SMTP_HOST);
  await once(server.server, 'listening');
  const { port } = server.server.address() as AddressInfo;
  logger.info({ host: config.INBOUND_SMTP_HOST, port }, 'inbound SMTP is listening');
  const unwatch = certificate
    ? watchTlsCertificate({
        listener: 'inbound',
        ...certificate,
        use: ({ key, cert }) => server.updateSecureContext({ key, cert }),
        logger,
        metrics: options.metrics,
        intervalMs: options.certificateCheckMs,
      })
    : () => undefined;
  return {
    port,
    close() {
      unwatch();
      return closeServer(server, inFlight);
    },
  };
}

/** Starts the listener with the services of a worker process. */
export function startInboundSmtp({
  config,
  logger,
  storage,
  services: { receipts },
  refusals,
  metrics,
  maxConcurrentReceiving,
  registry,
}: Pick<
  Composition,
  'config' | 'logger' | 'storage' | 'services' | 'refusals' | 'metrics' | 'maxConcurrentReceiving'
> & {
  registry: Registry;
}): Promise<InboundListener> {
  const duration = new Histogram({
    name: 'agent_email_inbound_accept_seconds',
    help: 'Time from the first byte of a message to the reply. Accepted means stored and committed.',
    labelNames: ['outcome'],
    buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
    registers: [registry],
  });
  const onReply = (outcome: InboundOutcome, seconds: number) => duration.observe({ outcome }, seconds);
  return startInboundListener({
    config,
    storage,
    receipts: limitReceipts(receipts, maxConcurrentReceiving),
    logger,
    onReply,
    metrics,
    reportRefusal: createRefusalReports({ direction: 'inbound', logger, metrics, recorder: refusals() }),
  });
}

/** Null: the listener offers no STARTTLS. */
async function findCertificate(config: InboundListenerConfig): Promise<ListenerCertificate | null> {
  const { INBOUND_SMTP_TLS_KEY_FILE: keyFile, INBOUND_SMTP_TLS_CERT_FILE: certFile } = config;
  if (!keyFile || !certFile) return null;
  const files = { keyFile, certFile };
  return { files, current: await readTlsCertificate(files) };
}

function serverOptions(
  config: InboundListenerConfig,
  certificate: ListenerCertificate | null,
): SMTPServerOptions {
  return {
    ...(certificate ? { key: certificate.current.key, cert: certificate.current.cert } : {}),
    name: config.INBOUND_SMTP_HOSTNAME ?? config.MAIL_DOMAIN,
    size: config.INBOUND_MAX_SIZE_BYTES,
    maxClients: config.INBOUND_SMTP_MAX_CONNECTIONS,
    maxRecipients: MAX_RECIPIENTS,
    socketTimeout: IDLE_TIMEOUT_MS,
    closeTimeout: CLOSE_GRACE_MS,
    disabledCommands: certificate ? ['AUTH'] : ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    logger: false,
  };
}

/**
 * @throws SmtpError 550 for an unknown address, an unsigned return path or a blocked sender, 452 if the organization has
 * reached its receive limit or the domain that of its catch-all inbox, 451 if the lookup fails or inbound mail is switched off.
 */
async function resolveRecipient(
  { receipts, logger }: InboundListenerOptions,
  address: string,
  { sender, others }: { sender: string; others: InboundRoute[] },
): Promise<InboundRoute> {
  const route = await receipts.resolve(address, sender, others).catch((error: unknown) => {
    logger.error({ err: error }, 'recipient lookup failed');
    throw temporaryFailure();
  });
  if (route === 'blocked')
    throw new SmtpError(550, '5.7.1 The recipient does not accept mail from this sender', 'sender_blocked');
  if (route === 'switched_off')
    throw new SmtpError(
      451,
      '4.3.2 The service does not accept mail for now, try again later',
      'service_paused',
    );
  if (route === 'separately')
    throw new SmtpError(
      452,
      '4.5.3 Send to this recipient in a transaction of its own',
      'too_many_recipients',
    );
  if (route === 'unknown') throw new SmtpError(550, '5.1.1 No such mailbox here', 'unknown_mailbox');
  if (route.kind === 'full')
    throw route.limit === 'receive_limit' ? receiveLimitReached() : catchAllLimitReached();
  return route;
}

/**
 * @returns the transaction's id.
 * @throws SmtpError after undoing everything, except an object that was stored before the database connection failed.
 */
async function receiveMail(
  options: InboundListenerOptions & LargeMessageSlots,
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
    const stored = await storeMessage(options, {
      data: stream,
      rawKey,
      holders: largeMessageHolders(session.remoteAddress, [...routes.values()]),
    });
    const mail: AcceptedMail = {
      ...stored,
      rawKey,
      mailFrom: envelope.mailFrom ? envelope.mailFrom.address : '',
      clientIp: session.remoteAddress,
      helo: session.hostNameAppearsAs || null,
      tls: session.secure,
      receivedAt,
      recipients,
    };
    await requireAuthenticated(receipts, mail);
    const rowCount = await receipts.commit(mail);
    // An unattributed report beyond the limit (`storeUnattributedReport`). No message is lost.
    if (rowCount === 0) await storage.delete(rawKey).catch(() => undefined);
    logger.info(
      { transaction: id, sizeBytes: stored.sizeBytes, recipients: recipients.length, rows: rowCount },
      'message accepted',
    );
    return id;
  } catch (error) {
    // If the database connection failed, the commit may have succeeded, and its receipt needs the object.
    if (toDatabaseError(error)?.code === 'unavailable')
      logger.warn({ rawKey }, 'did not delete an object that may have a receipt');
    else
      await storage.delete(rawKey).catch((failure: unknown) => {
        logger.warn({ err: failure, rawKey }, 'could not delete an object');
      });
    if (error instanceof SmtpError) throw error;
    if (isUsageLimitExceeded(error)) throw receiveLimitReached();
    // Logged as info, because a client must not be able to cause error logs.
    if (error instanceof ClientDisconnectedError) {
      logger.info({ transaction: id }, error.message);
      throw temporaryFailure('client_disconnected');
    }
    logger.error({ err: error, transaction: id }, 'could not accept a message');
    throw temporaryFailure();
  }
}

/** @throws SmtpError 550 if a recipient accepts only authenticated mail of this sender, 451 if DNS does not answer. */
async function requireAuthenticated(
  receipts: Pick<ReceiptService, 'checkSender'>,
  mail: AcceptedMail,
): Promise<void> {
  for (const { route } of mail.recipients) {
    if (route.kind === 'feedback') continue;
    const checked = await receipts.checkSender(mail, route);
    if (checked === 'undetermined') throw authenticationUnavailable();
    if (checked === 'unauthenticated') throw senderUnauthenticated();
  }
}

interface LargeMessageSlots {
  largeMessageSlots: Pick<FairShare, 'acquire'>;
}

function storeMessage(
  {
    storage,
    config,
    largeMessageSlots,
    largeMessageTimeoutMs = LARGE_MESSAGE_TIMEOUT_MS,
    dataRate,
  }: InboundListenerOptions & LargeMessageSlots,
  { data, rawKey, holders }: { data: SMTPServerDataStream; rawKey: string; holders: Holder[] },
): Promise<StoredObject> {
  return receiveData(
    data,
    {
      maxSizeBytes: config.INBOUND_MAX_SIZE_BYTES,
      ...(dataRate ? { dataRate } : {}),
      acquireLargeSlot(ended) {
        const signal = AbortSignal.any([ended, AbortSignal.timeout(largeMessageTimeoutMs)]);
        return largeMessageSlots.acquire({ holders, signal });
      },
    },
    (message) => storage.putStream(rawKey, message, { contentType: 'message/rfc822' }),
  );
}

/** The sending server retries for about 5 days (RFC 5321 section 4.5.4.1). */
function receiveLimitReached(): SmtpError {
  return new SmtpError(
    452,
    '4.2.2 The recipient has reached its receive limit, try again later',
    'receive_limit',
  );
}

function senderUnauthenticated(): SmtpError {
  return new SmtpError(
    550,
    '5.7.1 The recipient accepts mail from this sender only if DMARC passes or its domain has signed it',
    'sender_unauthenticated',
  );
}

function authenticationUnavailable(): SmtpError {
  return new SmtpError(
    451,
    '4.4.3 The sender cannot be authenticated now, try again later',
    'temporary_failure',
  );
}

function catchAllLimitReached(): SmtpError {
  return new SmtpError(
    452,
    '4.7.0 Too many messages to unknown addresses of this domain, try again later',
    'catch_all_limit',
  );
}

function temporaryFailure(reason: RefusalReason = 'temporary_failure'): SmtpError {
  return new SmtpError(451, '4.3.0 Temporary failure, try again later', reason);
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
