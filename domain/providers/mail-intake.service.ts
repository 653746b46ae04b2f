import { type Readable, Transform } from 'node:stream';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Storage, StoredObject } from '../../platform/storage.ts';
import type { AcceptedMail, InboundRoute } from '../inbound/inbound-routes.ts';
import type { ProviderVerdicts } from '../inbound/receipt.entity.ts';
import type { ReceiptService } from '../inbound/receipt.service.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';

/** A message that was received by another server. */
export interface ProviderMail {
  /** The provider's id. An inbox accepts each id only once. */
  transportId: string;
  source: Readable;
  /** Empty string for `<>`. */
  mailFrom: string;
  /** Empty string if the provider does not report it. */
  clientIp: string;
  helo: string | null;
  /** The provider's results. If omitted, this service checks the message. */
  verdicts?: ProviderVerdicts;
  /** When the provider received it; defaults to now. */
  receivedAt?: Date;
  recipients: { address: string; route: InboundRoute }[];
  /** Called with the stored object before the commit. If it throws, the object is deleted. */
  inspect?: (stored: StoredObject) => void;
}

export type MailIntake = ReturnType<typeof createMailIntake>;

export interface MailIntakeOptions {
  storage: Pick<Storage, 'putStream' | 'delete'>;
  receipts: Pick<ReceiptService, 'resolve' | 'checkSender' | 'hasReceived' | 'commit'>;
  maxSizeBytes: number;
}

/** As over SMTP: RFC 5321 section 6.3 detects loops by counting trace fields. */
const MAX_RECEIVED_FIELDS = 50;
/** Trace fields come first, so only the start of a longer header is checked. */
const MAX_HEADER_BYTES = 65_536;

/** Accepts mail that other servers received (providers, an upstream MTA). */
export function createMailIntake({ storage, receipts, maxSizeBytes }: MailIntakeOptions) {
  return {
    /**
     * Resolves addresses. `unknown` contains addresses without an inbox and addresses that block the sender. `overLimit`
     * contains those whose organization has reached its receive limit.
     *
     * @throws AppError `unavailable` while inbound mail is switched off.
     */
    async resolve(addresses: string[], mailFrom: string) {
      const distinct = [...new Set(addresses.map((address) => address.toLowerCase()))];
      const recipients: ProviderMail['recipients'] = [];
      const overLimit: ProviderMail['recipients'] = [];
      const unknown: string[] = [];
      for (const address of distinct) {
        const others = recipients.map((recipient) => recipient.route);
        // The message is checked for each recipient, so it needs no transactions of its own.
        const route = await receipts.resolve(address, mailFrom, others, { isDivisible: true });
        if (route === 'switched_off') throw inboundSwitchedOff();
        if (route === 'unknown' || route === 'blocked') unknown.push(address);
        else if (route === 'separately')
          throw new Error('A divisible message was refused for its other recipients');
        else if (route.kind === 'full') overLimit.push({ address, route: route.route });
        else recipients.push({ address, route });
      }
      return { recipients, unknown, overLimit };
    },

    /** Whether all of these inboxes have already received the id. */
    hasReceived: (transportId: string, recipients: ProviderMail['recipients']): Promise<boolean> =>
      receipts.hasReceived(transportId, recipients),

    /**
     * Stores the bytes and commits receipts, like the SMTP listener. Once it resolves, this service is responsible.
     *
     * @returns the recipients that accept the message.
     * @throws AppError `payload_too_large`, `unprocessable` (a mail loop, or a sender that must be authenticated and is not),
     * `unavailable`, `usage_limit_exceeded`; errors of `inspect`.
     */
    async accept({ source, inspect, ...mail }: ProviderMail): Promise<{ address: string }[]> {
      const now = new Date();
      const rawKey = `raw/${now.toISOString().slice(0, 10).replaceAll('-', '/')}/${newId('receipt')}.eml`;
      const limiter = createMailLimiter(maxSizeBytes);
      source.on('error', (error) => limiter.stream.destroy(error));
      source.once('close', () => {
        if (!source.readableEnded)
          limiter.stream.destroy(new Error('The client disconnected before the end of the message'));
      });
      limiter.stream.on('error', () => {});
      const stored = await storage
        .putStream(rawKey, source.pipe(limiter.stream), { contentType: 'message/rfc822' })
        .catch((error: unknown) => {
          throw limiter.refusal ?? error;
        });
      try {
        inspect?.(stored);
      } catch (error) {
        await storage.delete(rawKey).catch(() => undefined);
        throw error;
      }
      const mailStored = { receivedAt: now, ...mail, ...stored, rawKey, tls: true };
      const recipients = await keepAuthenticated(receipts, mailStored).catch(async (error: unknown) => {
        await storage.delete(rawKey).catch(() => undefined);
        throw error;
      });
      // Keeps the object after a failed commit: the commit may have succeeded, and a receipt would then refer to it.
      const committed = await receipts.commit({ ...mailStored, recipients }).catch(async (error: unknown) => {
        if (isUsageLimitExceeded(error)) await storage.delete(rawKey).catch(() => undefined);
        throw error;
      });
      if (committed === 0) await storage.delete(rawKey).catch(() => undefined);
      return recipients;
    },
  };
}

/** The provider retries, as after an outage. */
function inboundSwitchedOff(): AppError {
  return new AppError('unavailable', {
    detail: 'The operator of the service has switched inbound mail off for now.',
    fix: 'Hand the message over again later.',
    headers: { 'retry-after': '60' },
  });
}

function createMailLimiter(maxSizeBytes: number): {
  stream: Transform;
  readonly refusal: AppError | undefined;
} {
  let sizeBytes = 0;
  let header = '';
  let headerEnded = false;
  let refusal: AppError | undefined;
  const isLooping = (chunk: Buffer) => {
    if (headerEnded) return false;
    header += chunk.subarray(0, MAX_HEADER_BYTES).toString('latin1');
    const end = /\r?\n\r?\n/.exec(header)?.index ?? -1;
    headerEnded = end !== -1 || header.length > MAX_HEADER_BYTES;
    if (!headerEnded) return false;
    return (
      (header.slice(0, end === -1 ? undefined : end).match(/^received:/gim)?.length ?? 0) >
      MAX_RECEIVED_FIELDS
    );
  };
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      sizeBytes += chunk.length;
      if (sizeBytes > maxSizeBytes) refusal = mailTooLarge(maxSizeBytes);
      else if (isLooping(chunk)) refusal = mailLoop();
      if (refusal) done(refusal);
      else done(null, chunk);
    },
  });
  return {
    stream,
    get refusal() {
      return refusal;
    },
  };
}

/**
 * Leaves out the recipients that accept mail of the sender only if it is authenticated.
 *
 * @throws AppError `unavailable` if DNS does not answer; `unprocessable` if no recipient is left.
 */
async function keepAuthenticated(
  receipts: Pick<ReceiptService, 'checkSender'>,
  mail: AcceptedMail,
): Promise<AcceptedMail['recipients']> {
  const kept: AcceptedMail['recipients'] = [];
  for (const recipient of mail.recipients) {
    const { route } = recipient;
    const checked = route.kind === 'feedback' ? 'authenticated' : await receipts.checkSender(mail, route);
    if (checked === 'undetermined') throw authenticationUnavailable();
    if (checked === 'authenticated') kept.push(recipient);
  }
  if (kept.length === 0) throw senderUnauthenticated();
  return kept;
}

/** The provider retries, as after an outage. */
function authenticationUnavailable(): AppError {
  return new AppError('unavailable', {
    detail: 'The sender cannot be authenticated now, because DNS does not answer.',
    fix: 'Repeat the request later.',
  });
}

function senderUnauthenticated(): AppError {
  return new AppError('unprocessable', {
    detail: 'The recipient accepts mail from this sender only if DMARC passes or its domain has signed it.',
    fix: 'Reject it. A retry would also fail.',
  });
}

function mailTooLarge(maxSizeBytes: number): AppError {
  return new AppError('payload_too_large', {
    detail: `The message is larger than ${maxSizeBytes} bytes.`,
    fix: 'Reject it. A retry would also fail.',
  });
}

function mailLoop(): AppError {
  return new AppError('unprocessable', {
    detail: `The message has more than ${MAX_RECEIVED_FIELDS} Received fields: it is in a loop.`,
    fix: 'Reject it, and find the forwarding rule that causes the loop.',
  });
}
