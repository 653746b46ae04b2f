import { type Readable, Transform } from 'node:stream';
import { AppError } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Storage, StoredObject } from '../../platform/storage.ts';
import type { InboundRoute } from '../inbound/accepted-mail.ts';
import type { ProviderVerdicts } from '../inbound/receipt.entity.ts';
import type { ReceiptService } from '../inbound/receipt.service.ts';
import { isUsageLimitExceeded } from '../usage/limit-errors.ts';

/** A mail another server accepted for us, on its way into storage. */
export interface ProviderMail {
  /** What the provider calls it: taken in once for an inbox, however often it is handed over. */
  transportId: string;
  source: Readable;
  /** Empty string for `<>`. */
  mailFrom: string;
  /** Empty string where the provider does not tell. */
  clientIp: string;
  helo: string | null;
  /** What the provider found out about the sender; without it we look ourselves. */
  verdicts?: ProviderVerdicts;
  /** When the provider received it; now, where it does not tell. */
  receivedAt?: Date;
  recipients: { address: string; route: InboundRoute }[];
  /** Looks at what was stored before anything is committed; what it throws leaves nothing behind, as every refusal does. */
  inspect?: (stored: StoredObject) => void;
}

export interface MailIntake {
  /**
   * Tells the addresses that lead somewhere from those nobody has, or that want no mail of the sender, and from those
   * (`full`) whose organization may receive no more for now.
   */
  resolve(
    addresses: string[],
    mailFrom: string,
  ): Promise<{ recipients: ProviderMail['recipients']; unknown: string[]; full: ProviderMail['recipients'] }>;
  /** Whether a mail of that id has come to all of them before. */
  hasReceived(transportId: string, recipients: ProviderMail['recipients']): Promise<boolean>;
  /**
   * Stores the bytes and commits receipts, as the SMTP listener does. When it resolves the mail is ours.
   *
   * @throws AppError `payload_too_large`, `unprocessable` (a mail that goes in circles), `usage_limit_exceeded`; what
   * `inspect` throws.
   */
  take(mail: ProviderMail): Promise<void>;
}

export interface MailIntakeOptions {
  storage: Pick<Storage, 'putStream' | 'delete'>;
  receipts: Pick<ReceiptService, 'resolve' | 'hasReceived' | 'commit'>;
  maxSizeBytes: number;
}

/** As over SMTP: RFC 5321 section 6.3 wants loops found by counting trace fields. */
const MAX_RECEIVED_FIELDS = 50;
/** Trace fields stand first; a header that is longer before its end is nobody's. */
const MAX_HEADER_BYTES = 65_536;

/** Takes in mail that other servers received (providers, an MTA in front). */
export function createMailIntake({ storage, receipts, maxSizeBytes }: MailIntakeOptions): MailIntake {
  return {
    async resolve(addresses, mailFrom) {
      const distinct = [...new Set(addresses.map((address) => address.toLowerCase()))];
      const recipients: ProviderMail['recipients'] = [];
      const full: ProviderMail['recipients'] = [];
      const unknown: string[] = [];
      for (const address of distinct) {
        const others = recipients.map((recipient) => recipient.route);
        const route = await receipts.resolve(address, mailFrom, others);
        if (route === 'unknown' || route === 'blocked') unknown.push(address);
        else if (route.kind === 'full') full.push({ address, route: route.route });
        else recipients.push({ address, route });
      }
      return { recipients, unknown, full };
    },

    hasReceived: (transportId, recipients) => receipts.hasReceived(transportId, recipients),

    async take({ source, inspect, ...mail }) {
      const now = new Date();
      const rawKey = `raw/${now.toISOString().slice(0, 10).replaceAll('-', '/')}/${newId('receipt')}.eml`;
      const checked = createMailLimiter(maxSizeBytes);
      source.on('error', (error) => checked.stream.destroy(error));
      source.once('close', () => {
        if (!source.readableEnded)
          checked.stream.destroy(new Error('The sender left in the middle of the mail'));
      });
      checked.stream.on('error', () => {});
      const stored = await storage
        .putStream(rawKey, source.pipe(checked.stream), { contentType: 'message/rfc822' })
        .catch((error: unknown) => {
          throw checked.refusal ?? error;
        });
      try {
        inspect?.(stored);
      } catch (error) {
        await storage.delete(rawKey).catch(() => undefined);
        throw error;
      }
      // An object whose commit failed stays: the commit may have happened, and a receipt needs it.
      const committed = await receipts
        .commit({ receivedAt: now, ...mail, ...stored, rawKey, tls: true })
        .catch(async (error: unknown) => {
          if (isUsageLimitExceeded(error)) await storage.delete(rawKey).catch(() => undefined);
          throw error;
        });
      if (committed === 0) await storage.delete(rawKey).catch(() => undefined);
    },
  };
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

function mailTooLarge(maxSizeBytes: number): AppError {
  return new AppError('payload_too_large', {
    detail: `The mail is larger than ${maxSizeBytes} bytes.`,
    fix: 'Refuse it to its sender; it will not be taken later either.',
  });
}

function mailLoop(): AppError {
  return new AppError('unprocessable', {
    detail: `The mail passed more than ${MAX_RECEIVED_FIELDS} servers: it goes round in circles.`,
    fix: 'Refuse it to its sender, and look for the rule that sends it back.',
  });
}
