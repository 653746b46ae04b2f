import { readFileSync } from 'node:fs';
import type { Readable } from 'node:stream';
import type { NodemailerError } from 'nodemailer';
import MimeNode from 'nodemailer/lib/mime-node';
import SMTPPool, { type SMTPPoolOptions, type SMTPPoolSentMessageInfo } from 'nodemailer/lib/smtp-pool';
import type { Config } from '../config.ts';
import type { MailTransport, Transmission, TransmissionResult } from './mail-transport.ts';
import { createMessageHandover, type MessageHandover } from './message-handover.ts';
import { MAX_RESPONSE_CHARACTERS, parseQueueId, parseStatusCode } from './smtp-reply.ts';

export type SmtpTransportConfig = Pick<
  Config,
  | 'SMTP_RELAY_HOST'
  | 'SMTP_RELAY_PORT'
  | 'SMTP_RELAY_TLS'
  | 'SMTP_RELAY_TLS_CA_FILE'
  | 'SMTP_RELAY_INSECURE_AUTH'
  | 'SMTP_RELAY_USER'
  | 'SMTP_RELAY_PASSWORD'
  | 'SMTP_RELAY_POOL_SIZE'
  | 'MAIL_DOMAIN'
>;

export interface SmtpTimeouts {
  connectMs: number;
  greetingMs: number;
  /** Silence of the relay at any later step. Hanging up before a slow final reply makes a message ambiguous. */
  idleMs: number;
}

/** RFC 5321 section 4.5.3.2.6 asks a client to wait 10 minutes for the reply to the final dot. */
const DEFAULT_TIMEOUTS: SmtpTimeouts = { connectMs: 30_000, greetingMs: 30_000, idleMs: 600_000 };
const CLOSE_GRACE_MS = 10_000;

/**
 * Sends messages to a relay over pooled SMTP connections and requests delivery reports if the relay supports DSN.
 *
 * @throws Error if the settings would send a password without TLS, or the file with the authorities cannot be read.
 */
export function createSmtpTransport(
  config: SmtpTransportConfig,
  timeouts: SmtpTimeouts = DEFAULT_TIMEOUTS,
): MailTransport {
  const pool = new SMTPPool(poolOptions(config, timeouts));
  const inFlight = new Set<Promise<TransmissionResult>>();

  function transmit(transmission: Transmission): Promise<TransmissionResult> {
    const handover = createMessageHandover(transmission);
    const { promise, resolve } = Promise.withResolvers<TransmissionResult>();
    pool.send(buildPooledMail(transmission, handover), (error, info) => {
      resolve(info ? toAccepted(info) : classifyFailure(error, handover));
    });
    inFlight.add(promise);
    void promise.then(() => inFlight.delete(promise));
    return promise;
  }

  return {
    name: 'smtp',
    transmit,
    async close() {
      const timer = setTimeout(() => pool.close({ force: true }), CLOSE_GRACE_MS);
      pool.close();
      await Promise.all(inFlight);
      clearTimeout(timer);
    },
  };
}

function poolOptions(config: SmtpTransportConfig, timeouts: SmtpTimeouts): SMTPPoolOptions {
  const { SMTP_RELAY_USER: user } = config;
  return {
    host: config.SMTP_RELAY_HOST,
    port: config.SMTP_RELAY_PORT,
    name: config.MAIL_DOMAIN,
    ...tlsOptions(config),
    ...(user ? { auth: { user, pass: config.SMTP_RELAY_PASSWORD } } : {}),
    maxConnections: config.SMTP_RELAY_POOL_SIZE,
    // The pool would requeue a message when its connection closes. Only the workflow decides about retries.
    maxRequeues: 0,
    connectionTimeout: timeouts.connectMs,
    greetingTimeout: timeouts.greetingMs,
    socketTimeout: timeouts.idleMs,
  };
}

/** A password is never sent to a relay whose certificate was not verified, unless the configuration says so. */
function tlsOptions(config: SmtpTransportConfig): SMTPPoolOptions {
  const { SMTP_RELAY_TLS: mode, SMTP_RELAY_TLS_CA_FILE: caFile, SMTP_RELAY_USER: user } = config;
  if ((user === undefined) !== (config.SMTP_RELAY_PASSWORD === undefined))
    throw new Error('SMTP_RELAY_USER and SMTP_RELAY_PASSWORD must be set together.');
  const protectsPassword = user !== undefined && !config.SMTP_RELAY_INSECURE_AUTH;
  if (protectsPassword && mode === 'none')
    throw new Error(
      'SMTP_RELAY_TLS=none would send SMTP_RELAY_PASSWORD unencrypted. Use required or implicit, or SMTP_RELAY_INSECURE_AUTH=true for a relay on the same machine.',
    );
  const isOpportunistic = mode === 'opportunistic' && !protectsPassword;
  return {
    secure: mode === 'implicit',
    ignoreTLS: mode === 'none',
    requireTLS: mode !== 'none' && mode !== 'implicit' && !isOpportunistic,
    opportunisticTLS: isOpportunistic,
    tls: {
      // Opportunistic TLS protects only against eavesdropping (RFC 7435): a bad certificate is still better than none.
      rejectUnauthorized: !isOpportunistic && !config.SMTP_RELAY_INSECURE_AUTH,
      ...(caFile ? { ca: readFileSync(caFile) } : {}),
    },
  };
}

type PooledMail = Parameters<SMTPPool['send']>[0];

/**
 * A stored message in place of one that nodemailer composes. The composer starts to read its source before the relay has
 * accepted the envelope, so that it would be unknown whether the relay may have received the message; it also changes
 * addresses. The connection still normalizes line ends and stuffs dots.
 */
class StoredMessage extends MimeNode {
  readonly #transmission: Transmission;
  readonly #handover: MessageHandover;

  constructor(transmission: Transmission, handover: MessageHandover) {
    super();
    this.#transmission = transmission;
    this.#handover = handover;
  }

  override getEnvelope() {
    const { sender, recipient, sizeBytes } = this.#transmission;
    return { from: sender, to: [recipient], size: sizeBytes, use8BitMime: true };
  }

  override messageId(): string {
    return this.#transmission.envelopeId;
  }

  override createReadStream(): Readable {
    return this.#handover.openStream();
  }
}

/** A transport reads these two of a message: https://nodemailer.com/plugins/create/ */
function buildPooledMail(transmission: Transmission, handover: MessageHandover): PooledMail {
  const { signal } = transmission;
  const mail: Pick<PooledMail, 'data' | 'message'> = {
    data: { dsn: buildDsnOptions(transmission), ...(signal ? { signal } : {}) },
    message: new StoredMessage(transmission, handover),
  };
  return mail as PooledMail;
}

/** DSN parameters (RFC 3461); the connection omits them if the relay does not support the extension. */
function buildDsnOptions({ recipient, envelopeId, reports }: Transmission) {
  if (reports === 'never') return { notify: ['never'] };
  const ascii = /^[\x21-\x7e]+$/.test(recipient);
  return {
    id: envelopeId,
    return: 'headers',
    notify: ['success', 'failure', 'delay'],
    // An internationalized address needs the `utf-8` type (RFC 6533), which few relays support, so it is omitted.
    ...(ascii ? { recipient: `rfc822;${recipient}` } : {}),
  };
}

function toAccepted(info: SMTPPoolSentMessageInfo): TransmissionResult {
  const response = info.response.slice(0, MAX_RESPONSE_CHARACTERS);
  return {
    kind: 'accepted',
    providerMessageId: parseQueueId(response),
    response,
    reportsDelivery: (info.ehlo ?? []).some((line) => /^DSN\b/i.test(line)),
  };
}

function classifyFailure(error: NodemailerError | null, handover: MessageHandover): TransmissionResult {
  const code = error?.responseCode ?? 0;
  const response = (error?.response ?? error?.message ?? 'No response').slice(0, MAX_RESPONSE_CHARACTERS);
  const refused = code >= 400 && code < 600;
  if (handover.completed && !refused) return { kind: 'ambiguous', response, cause: error };
  const scope = findRefusalScope(error, handover);
  if (scope) return { kind: 'refused', scope, statusCode: findRefusalStatus(error), response };
  return { kind: 'deferred', statusCode: parseStatusCode(error?.response), response, cause: error };
}

/** Replies that concern the session (credentials, TLS, sequence), not the message: the message is deferred. */
const SESSION_ERRORS = new Set([503, 523, 530, 534, 535, 538]);

/** Returns what a refusal applies to; null if it is not final, or applies to the session. */
function findRefusalScope(
  error: NodemailerError | null,
  handover: MessageHandover,
): 'recipient' | 'message' | null {
  const code = error?.responseCode;
  if (code === undefined) {
    // Refused by nodemailer before sending: larger than the relay's SIZE, or an address that SMTP cannot carry.
    if (error?.code === 'EMESSAGE' && error.command === 'MAIL FROM') return 'message';
    return error?.code === 'EENVELOPE' && error.command === 'API' ? 'recipient' : null;
  }
  if (code < 500 || code > 599) return null;
  if (handover.completed) return 'message';
  if (SESSION_ERRORS.has(code)) return null;
  if (error?.command === 'RCPT TO') return 'recipient';
  return error?.command === 'MAIL FROM' || error?.command === 'DATA' ? 'message' : null;
}

function findRefusalStatus(error: NodemailerError | null): string {
  const statusCode = parseStatusCode(error?.response);
  if (statusCode) return statusCode;
  // RFC 3463: 5.3.4 message too big for system, 5.1.3 bad destination mailbox address syntax.
  return error?.code === 'EMESSAGE' ? '5.3.4' : '5.1.3';
}
