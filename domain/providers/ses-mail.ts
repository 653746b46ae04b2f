import type { ProviderVerdicts } from '../inbound/receipt.entity.ts';
import { type JsonObject, parseJson, toDate, toList, toObject, toText } from './json-fields.ts';

/** A message that SES received, from its notification. */
export interface SesMail {
  sesMessageId: string;
  /** Empty string for `<>`. */
  mailFrom: string;
  recipients: string[];
  receivedAt: Date | null;
  verdicts: ProviderVerdicts;
  /** Null if the notification contains neither the message nor an S3 object key. */
  content: { kind: 'object'; bucket: string; key: string } | { kind: 'inline'; bytes: Buffer } | null;
}

/** More than SES accepts for one message. */
const MAX_RECIPIENTS = 1_000;

/**
 * Parses a notification of received mail (SES developer guide, "Contents of notifications for Amazon SES email
 * receiving").
 *
 * @returns null for other notifications, including those of other actions of a receipt rule.
 */
export function parseSesMail(text: string): SesMail | null {
  const notification = toObject(parseJson(text));
  if (notification.notificationType !== 'Received') return null;
  const [mail, receipt] = [toObject(notification.mail), toObject(notification.receipt)];
  const action = toObject(receipt.action);
  if (action.type !== 'S3' && action.type !== 'SNS') return null;
  const sesMessageId = toText(mail.messageId);
  if (sesMessageId === null) return null;
  return {
    sesMessageId,
    mailFrom: (toText(mail.source) ?? '').replace(/^<(.*)>$/, '$1'),
    recipients: toList(receipt.recipients, MAX_RECIPIENTS).flatMap((address) => toText(address) ?? []),
    receivedAt: toDate(mail.timestamp),
    verdicts: toVerdicts(receipt),
    content: action.type === 'S3' ? toObjectContent(action) : toInlineContent(action, notification.content),
  };
}

/** An S3 key has at most 1,024 bytes. */
function toObjectContent({ bucketName, objectKey }: JsonObject): SesMail['content'] {
  if (typeof bucketName !== 'string' || typeof objectKey !== 'string') return null;
  if (bucketName === '' || objectKey === '' || objectKey.length > 1_024) return null;
  return { kind: 'object', bucket: bucketName, key: objectKey };
}

function toInlineContent({ encoding }: JsonObject, content: unknown): SesMail['content'] {
  if (typeof content !== 'string') return null;
  const isBase64 = typeof encoding === 'string' && /^base64$/i.test(encoding);
  return { kind: 'inline', bytes: Buffer.from(content, isBase64 ? 'base64' : 'utf8') };
}

/** A virus counts as spam. */
function toVerdicts(receipt: JsonObject): ProviderVerdicts {
  const statusOf = (verdict: unknown) => String(toObject(verdict).status).toUpperCase();
  const policy = String(receipt.dmarcPolicy).toLowerCase();
  return {
    authentication: {
      spf: toAuthenticationResult(statusOf(receipt.spfVerdict)),
      dkim: toAuthenticationResult(statusOf(receipt.dkimVerdict)),
      dmarc: toAuthenticationResult(statusOf(receipt.dmarcVerdict)),
      arc: 'none',
      policy: policy === 'none' || policy === 'quarantine' || policy === 'reject' ? policy : null,
    },
    isSpam: [receipt.spamVerdict, receipt.virusVerdict].some((verdict) => statusOf(verdict) === 'FAIL'),
  };
}

/** Maps verdicts to RFC 8601. `GRAY` and a missing verdict mean that there was nothing to check. */
function toAuthenticationResult(status: string): string {
  if (status === 'PASS' || status === 'FAIL') return status.toLowerCase();
  return status === 'PROCESSING_FAILED' ? 'temperror' : 'none';
}
