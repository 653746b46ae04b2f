import type { ProviderVerdicts } from '../inbound/receipt.entity.ts';
import { type Fields, listOf, objectOf, parseJson, textOf, timeOf } from './json-fields.ts';

/** A mail SES received for us, as its notification tells of it. */
export interface SesMail {
  sesMessageId: string;
  /** Empty string for `<>`. */
  mailFrom: string;
  recipients: string[];
  receivedAt: Date | null;
  verdicts: ProviderVerdicts;
  /** Null: SES kept no copy that we could read. */
  content: { kind: 'object'; bucket: string; key: string } | { kind: 'inline'; bytes: Buffer } | null;
}

/** More than SES takes for one mail. */
const MAX_RECIPIENTS = 1_000;

/**
 * Reads what SES publishes of mail it received (its developer guide, "Contents of notifications for Amazon SES email
 * receiving").
 *
 * @returns null for what tells of no received mail, and for what the other actions of a rule tell of one.
 */
export function readSesMail(text: string): SesMail | null {
  const notification = objectOf(parseJson(text));
  if (notification.notificationType !== 'Received') return null;
  const [mail, receipt] = [objectOf(notification.mail), objectOf(notification.receipt)];
  const action = objectOf(receipt.action);
  if (action.type !== 'S3' && action.type !== 'SNS') return null;
  const sesMessageId = textOf(mail.messageId);
  if (sesMessageId === null) return null;
  return {
    sesMessageId,
    mailFrom: (textOf(mail.source) ?? '').replace(/^<(.*)>$/, '$1'),
    recipients: listOf(receipt.recipients, MAX_RECIPIENTS).flatMap((address) => textOf(address) ?? []),
    receivedAt: timeOf(mail.timestamp),
    verdicts: verdictsOf(receipt),
    content: action.type === 'S3' ? objectNamed(action) : inlineContent(action, notification.content),
  };
}

/** S3 keys have at most 1,024 bytes. */
function objectNamed({ bucketName, objectKey }: Fields): SesMail['content'] {
  if (typeof bucketName !== 'string' || typeof objectKey !== 'string') return null;
  if (bucketName === '' || objectKey === '' || objectKey.length > 1_024) return null;
  return { kind: 'object', bucket: bucketName, key: objectKey };
}

function inlineContent({ encoding }: Fields, content: unknown): SesMail['content'] {
  if (typeof content !== 'string') return null;
  const isBase64 = typeof encoding === 'string' && /^base64$/i.test(encoding);
  return { kind: 'inline', bytes: Buffer.from(content, isBase64 ? 'base64' : 'utf8') };
}

/** A virus is nothing to announce either. */
function verdictsOf(receipt: Fields): ProviderVerdicts {
  const statusOf = (verdict: unknown) => String(objectOf(verdict).status).toUpperCase();
  const policy = String(receipt.dmarcPolicy).toLowerCase();
  return {
    authentication: {
      spf: resultOf(statusOf(receipt.spfVerdict)),
      dkim: resultOf(statusOf(receipt.dkimVerdict)),
      dmarc: resultOf(statusOf(receipt.dmarcVerdict)),
      arc: 'none',
      policy: policy === 'none' || policy === 'quarantine' || policy === 'reject' ? policy : null,
    },
    isSpam: [receipt.spamVerdict, receipt.virusVerdict].some((verdict) => statusOf(verdict) === 'FAIL'),
  };
}

/** In the words of RFC 8601. `GRAY` says that there was nothing to check; an absent verdict says no more. */
function resultOf(status: string): string {
  if (status === 'PASS' || status === 'FAIL') return status.toLowerCase();
  return status === 'PROCESSING_FAILED' ? 'temperror' : 'none';
}
