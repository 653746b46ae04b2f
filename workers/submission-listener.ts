import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import {
  SMTPServer,
  type SMTPServerAuthentication,
  type SMTPServerDataStream,
  type SMTPServerOptions,
  type SMTPServerSession,
} from 'smtp-server';
import { findAddressProblem } from '../domain/mime/mail-address.ts';
import { MAX_RECIPIENTS } from '../domain/outbound/outbound-content.ts';
import type { Submitter } from '../domain/outbound/queue-submission.ts';
import type { SubmissionService } from '../domain/outbound/submission.service.ts';
import type { RefusalStage } from '../domain/refusals/refusal.entity.ts';
import { isUsageLimitExceeded } from '../domain/usage/limit-errors.ts';
import { createFairShare, type FairShare, thirdOf } from '../platform/concurrency/fair-share.ts';
import type { Config } from '../platform/config.ts';
import { AppError } from '../platform/errors.ts';
import type { ServiceMetrics } from '../platform/service-metrics.ts';
import {
  type ListenerCertificate,
  readTlsCertificate,
  watchTlsCertificate,
} from '../platform/tls-certificate.ts';
import { withSpan } from '../platform/tracing/span.ts';
import { type AuthThrottle, createAuthThrottle } from './auth-throttle.ts';
import { type BuiltInRefusal, watchBuiltInRefusals } from './built-in-refusals.ts';
import type { Composition } from './composition.ts';
import type { DataRate } from './data-rate.ts';
import { exceedsConnectionLimit, largeMessageHolders, tooManyConnections } from './inbound-limits.ts';
import { createRefusalReports, type ReportRefusal } from './report-refusal.ts';
import { ClientDisconnectedError, receiveData, SmtpError } from './smtp-data.ts';

export type SubmissionListenerConfig = Pick<
  Config,
  | 'NODE_ENV'
  | 'MAIL_DOMAIN'
  | 'SUBMISSION_SMTP_HOST'
  | 'SUBMISSION_SMTP_PORT'
  | 'SUBMISSION_SMTP_TLS_PORT'
  | 'SUBMISSION_SMTP_HOSTNAME'
  | 'SUBMISSION_SMTP_TLS_KEY_FILE'
  | 'SUBMISSION_SMTP_TLS_CERT_FILE'
  | 'INBOUND_SMTP_MAX_CONNECTIONS'
  | 'INBOUND_SMTP_MAX_CONNECTIONS_PER_IP'
  | 'INBOUND_MAX_SIZE_BYTES'
>;

export interface SubmissionListenerOptions {
  config: SubmissionListenerConfig;
  submissions: SubmissionService;
  logger: Logger;
  /** Called for each refused command. */
  reportRefusal?: ReportRefusal;
  /** How fast a client must send a message. */
  dataRate?: DataRate;
  /** How often the files of the certificate are read. */
  certificateCheckMs?: number;
  metrics?: ServiceMetrics;
}

export interface SubmissionListener {
  /** The port with STARTTLS. */
  port: number;
  /** The port with implicit TLS, if enabled. */
  tlsPort: number | null;
  close(): Promise<void>;
}

/** RFC 4954 section 4 leaves the timeout to the server. Mail clients keep connections open between messages. */
const IDLE_TIMEOUT_MS = 300_000;
const CLOSE_GRACE_MS = 10_000;
/** Each large message is read and stored twice while its client waits. */
const MAX_CONCURRENT_LARGE_MESSAGES = 4;

/**
 * Accepts messages from email clients (RFC 6409), authenticated as an inbox and only over TLS. A 250 reply after the data
 * means that the message is created and queued as if sent through the API, with the same checks and events. A refusal
 * states the reason.
 *
 * @throws Error if an address cannot be bound, or the certificate cannot be read or is missing in production.
 */
export async function startSubmissionListener(
  options: SubmissionListenerOptions,
): Promise<SubmissionListener> {
  const { config, logger } = options;
  const certificate = await findCertificate(config);
  const { key, cert } = certificate?.current ?? {};
  const throttle = createAuthThrottle();
  const serve = async (port: number, secure: boolean) => {
    const server = createServer(options, throttle, { ...(key && cert ? { key, cert } : {}), secure });
    server.on('error', (error) => logger.debug({ err: error }, 'submission connection failed'));
    server.listen(port, config.SUBMISSION_SMTP_HOST);
    await once(server.server, 'listening');
    return { server, port: (server.server.address() as AddressInfo).port };
  };
  const plain = await serve(config.SUBMISSION_SMTP_PORT, false);
  const tls =
    config.SUBMISSION_SMTP_TLS_PORT === 0 ? null : await serve(config.SUBMISSION_SMTP_TLS_PORT, true);
  const unwatch = certificate
    ? watchTlsCertificate({
        listener: 'submission',
        ...certificate,
        use(renewed) {
          for (const part of [plain, tls])
            part?.server.updateSecureContext({ key: renewed.key, cert: renewed.cert });
        },
        logger,
        metrics: options.metrics,
        intervalMs: options.certificateCheckMs,
      })
    : () => undefined;
  logger.info(
    { host: config.SUBMISSION_SMTP_HOST, port: plain.port, tlsPort: tls?.port },
    'submission listener started',
  );
  return {
    port: plain.port,
    tlsPort: tls?.port ?? null,
    async close() {
      unwatch();
      await Promise.all([plain, tls].map((part) => part && closeServer(part.server)));
    },
  };
}

/** Starts the listener with the services of a worker process. */
export function startSubmissionSmtp({
  config,
  logger,
  submissions,
  refusals,
  metrics,
}: Pick<
  Composition,
  'config' | 'logger' | 'submissions' | 'refusals' | 'metrics'
>): Promise<SubmissionListener> {
  const reportRefusal = createRefusalReports({
    direction: 'outbound',
    logger,
    metrics,
    recorder: refusals(),
  });
  return startSubmissionListener({ config, submissions: submissions(), logger, metrics, reportRefusal });
}

async function findCertificate(config: SubmissionListenerConfig): Promise<ListenerCertificate | null> {
  const { SUBMISSION_SMTP_TLS_KEY_FILE: keyFile, SUBMISSION_SMTP_TLS_CERT_FILE: certFile } = config;
  if (keyFile && certFile) {
    const files = { keyFile, certFile };
    return { files, current: await readTlsCertificate(files) };
  }
  // Outside production smtp-server uses its built-in certificate for localhost, whose key is public.
  if (config.NODE_ENV !== 'production') return null;
  throw new Error(
    'SUBMISSION_SMTP_TLS_KEY_FILE and SUBMISSION_SMTP_TLS_CERT_FILE are required: passwords are accepted only over TLS.',
  );
}

function createServer(
  options: SubmissionListenerOptions,
  throttle: AuthThrottle,
  tls: SMTPServerOptions,
): SMTPServer {
  const { config, submissions, logger } = options;
  const submitters = new Map<string, Submitter>();
  const slots = createFairShare({
    name: 'large messages submitted',
    capacity: MAX_CONCURRENT_LARGE_MESSAGES,
    reserve: thirdOf(MAX_CONCURRENT_LARGE_MESSAGES),
  });
  /** Reports a refusal to the inbox that is or wants to be logged in. */
  function refused(
    stage: RefusalStage,
    session: SMTPServerSession,
    error: SmtpError,
    { login, sender, recipients = [] }: { login?: string } & Partial<BuiltInRefusal> = {},
  ): SmtpError {
    const address = login ?? submitters.get(session.id)?.email;
    const { mailFrom } = session.envelope;
    const concerned = recipients.length === 0 ? [null] : recipients;
    options.reportRefusal?.({
      stage,
      affected: address === undefined ? [] : concerned.map((recipient) => ({ address, recipient })),
      sender: mailFrom ? mailFrom.address : (sender ?? null),
      session,
      error,
    });
    return error;
  }

  const builtIn = watchBuiltInRefusals((refusal, session) => {
    refused(refusal.stage, session, refusal.error, refusal);
  });
  const server: SMTPServer = new SMTPServer({
    ...tls,
    name: config.SUBMISSION_SMTP_HOSTNAME ?? config.MAIL_DOMAIN,
    authMethods: ['PLAIN', 'LOGIN'],
    allowInsecureAuth: false,
    size: config.INBOUND_MAX_SIZE_BYTES,
    maxClients: config.INBOUND_SMTP_MAX_CONNECTIONS,
    socketTimeout: IDLE_TIMEOUT_MS,
    closeTimeout: CLOSE_GRACE_MS,
    disableReverseLookup: true,
    logger: false,
    onConnect(session, done) {
      const maxConnections = config.INBOUND_SMTP_MAX_CONNECTIONS_PER_IP;
      builtIn.begin(session);
      if (!exceedsConnectionLimit(server.connections, session.remoteAddress, maxConnections)) return done();
      done(refused('connect', session, tooManyConnections()));
    },
    onAuth(auth, session, done) {
      authenticate(submissions, throttle, auth, session).then(
        (submitter) => {
          submitters.set(session.id, submitter);
          done(null, { user: submitter.inboxId });
        },
        (error: unknown) =>
          done(refused('auth', session, toRefusal(error, logger), { login: auth.username ?? '' })),
      );
    },
    onMailFrom({ address }, session, done) {
      const submitter = submitters.get(session.id);
      if (submitter && submissions.maySendAs(submitter, address)) return done();
      const error = submitter
        ? new SmtpError(553, `5.7.1 You may only send as ${submitter.email}`, 'wrong_sender')
        : new SmtpError(530, '5.7.0 Authentication required', 'not_authenticated');
      done(refused('mail', session, error));
    },
    onRcptTo({ address }, session, done) {
      const problem = findAddressProblem(address);
      const error =
        session.envelope.rcptTo.length >= MAX_RECIPIENTS
          ? new SmtpError(
              452,
              `4.5.3 At most ${MAX_RECIPIENTS} recipients per message`,
              'too_many_recipients',
            )
          : problem && new SmtpError(553, `5.1.3 The address ${toReplyText(problem)}`, 'invalid_recipient');
      done(error ? refused('rcpt', session, error, { recipients: [address] }) : null);
    },
    onData(stream, session, done) {
      withSpan({ name: 'SMTP submit', kind: 'server', parent: 'root' }, () =>
        submit({ ...options, slots }, stream, session, submitters.get(session.id)),
      ).then(
        (messageId) => done(null, `2.0.0 Ok: queued as ${messageId}`),
        (error: unknown) => done(refused('data', session, toRefusal(error, logger))),
      );
    },
    onClose(session) {
      builtIn.end(session);
      submitters.delete(session.id);
    },
  });
  server.logger = builtIn.logger;
  return server;
}

async function authenticate(
  submissions: SubmissionService,
  throttle: AuthThrottle,
  { username, password }: SMTPServerAuthentication,
  { remoteAddress }: SMTPServerSession,
): Promise<Submitter> {
  const end = throttle.begin(remoteAddress);
  if (end === 'exhausted')
    throw new SmtpError(
      421,
      '4.7.0 Too many failed logins from your address, try again in 15 minutes',
      'too_many_logins',
    );
  if (end === 'busy')
    throw new SmtpError(
      421,
      '4.7.0 Too many logins from your address at the same time, try again later',
      'too_busy',
    );
  let outcome: 'failed' | 'other' = 'other';
  try {
    const submitter = await submissions.authenticate(username ?? '', password ?? '');
    if (submitter) return submitter;
    outcome = 'failed';
    throw new SmtpError(535, '5.7.8 Wrong address or password', 'wrong_credentials');
  } finally {
    end(outcome);
  }
}

const tenantOf = ({ inboxId, scope }: Submitter) => ({ inboxId, organizationId: scope.organizationId });

async function submit(
  { config, submissions, dataRate, slots }: SubmissionListenerOptions & { slots: FairShare },
  stream: SMTPServerDataStream,
  { envelope, remoteAddress }: SMTPServerSession,
  submitter: Submitter | undefined,
): Promise<string> {
  if (!submitter) throw new SmtpError(530, '5.7.0 Authentication required', 'not_authenticated');
  return receiveData(
    stream,
    {
      maxSizeBytes: config.INBOUND_MAX_SIZE_BYTES,
      ...(dataRate ? { dataRate } : {}),
      acquireLargeSlot: (ended) =>
        slots.acquire({ holders: largeMessageHolders(remoteAddress, [tenantOf(submitter)]), signal: ended }),
    },
    (raw) =>
      submissions.submit(submitter, { raw, recipients: envelope.rcptTo.map(({ address }) => address) }),
  );
}

/** Maps the API's errors to SMTP replies with enhanced status codes (RFC 3463). */
function toRefusal(error: unknown, logger: Logger): SmtpError {
  if (error instanceof SmtpError) return error;
  if (isUsageLimitExceeded(error))
    return new SmtpError(452, `4.3.1 ${toReplyText(error.detail)}`, 'usage_limit');
  if (error instanceof AppError && error.status < 500 && error.status !== 429) {
    if (error.code === 'unauthenticated')
      return new SmtpError(421, `4.7.0 ${toReplyText(error.detail)}`, 'wrong_credentials');
    if (error.code === 'payload_too_large')
      return new SmtpError(552, `5.3.4 ${toReplyText(error.detail)}`, 'message_too_large');
    if (error.code === 'validation_error')
      return new SmtpError(554, `5.6.0 ${toReplyText(error.detail)}`, 'malformed_message');
    return new SmtpError(
      550,
      `5.7.1 ${toReplyText(error.detail)} ${toReplyText(error.fix)}`,
      'message_rejected',
    );
  }
  const isDisconnected = error instanceof ClientDisconnectedError;
  if (isDisconnected) logger.info(error.message);
  else if (!(error instanceof AppError)) logger.error({ err: error }, 'submission failed');
  const reason = isDisconnected ? 'client_disconnected' : 'temporary_failure';
  return new SmtpError(451, '4.3.0 Temporary failure, try again later', reason);
}

/** A reply is a single line of ASCII (RFC 5321 section 4.2). */
function toReplyText(text: string): string {
  return text
    .replace(/[‘’]/g, "'")
    .replace(/[^\x21-\x7e]+/g, (other) => (/^\s+$/.test(other) ? ' ' : '?'))
    .slice(0, 400);
}

async function closeServer(server: SMTPServer): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const timer = AbortSignal.timeout(CLOSE_GRACE_MS);
  await Promise.race([closed, once(timer, 'abort')]);
  for (const connection of server.connections) connection.close();
  await closed;
}
