import MimeNode from 'nodemailer/lib/mime-node';
import type { SimulatedOutcome } from './simulated-outcome.ts';

export interface ReportedRecipient {
  address: string;
  /** ORCPT of RFC 3461, `rfc822;name@domain`. */
  originalRecipient?: string;
}

export interface ReportedMail {
  /** ENVID of RFC 3461. */
  envelopeId?: string;
  /** MAIL FROM, which the report is sent to. */
  returnPath: string;
  arrivedAt: Date;
  /** The header block of the message, without this relay's Received fields. */
  headers: string;
}

const DELAY_WILL_RETRY_MS = 4 * 24 * 3600 * 1000;

const SUBJECTS: Record<SimulatedOutcome['action'], string> = {
  delivered: 'Successful Mail Delivery Report',
  relayed: 'Successful Mail Delivery Report',
  failed: 'Undelivered Mail Returned to Sender',
  delayed: 'Delayed Mail (still being retried)',
};

/** A delivery status notification (RFC 3464) about one recipient, from an MTA named `reporter`. */
export function deliveryReport(
  reporter: string,
  mail: ReportedMail,
  recipient: ReportedRecipient,
  fate: SimulatedOutcome,
): Promise<Buffer> {
  const perMessage = [
    `Reporting-MTA: dns; ${reporter}`,
    ...(mail.envelopeId ? [`Original-Envelope-Id: ${mail.envelopeId}`] : []),
    `Arrival-Date: ${smtpDate(mail.arrivedAt)}`,
  ];
  const perRecipient = [
    ...(recipient.originalRecipient ? [`Original-Recipient: ${recipient.originalRecipient}`] : []),
    `Final-Recipient: rfc822; ${recipient.address}`,
    `Action: ${fate.action}`,
    `Status: ${fate.status}`,
    `Remote-MTA: dns; ${recipient.address.split('@').at(-1)}`,
    `Diagnostic-Code: smtp; ${fate.diagnostic}`,
    ...(fate.action === 'delayed'
      ? [`Will-Retry-Until: ${smtpDate(new Date(Date.now() + DELAY_WILL_RETRY_MS))}`]
      : [`Last-Attempt-Date: ${smtpDate(new Date())}`]),
  ];
  const text = `This is the mail system at host ${reporter}.\r\n\r\n<${recipient.address}>: ${fate.diagnostic}\r\n`;
  return buildReport(reporter, mail, {
    to: mail.returnPath,
    reportType: 'delivery-status',
    subject: SUBJECTS[fate.action],
    text,
    machinePart: [perMessage, perRecipient],
  });
}

/** A complaint (RFC 5965) about one recipient's copy. */
export function complaintReport(
  reporter: string,
  mail: ReportedMail,
  recipient: ReportedRecipient,
  to: string,
): Promise<Buffer> {
  return buildReport(reporter, mail, {
    to,
    reportType: 'feedback-report',
    subject: 'Abuse report',
    text: `This is an email abuse report for a mail received on ${smtpDate(mail.arrivedAt)}.\r\n`,
    machinePart: [
      [
        'Feedback-Type: abuse',
        'User-Agent: agent-email-dev-relay/1.0',
        'Version: 1',
        `Original-Mail-From: <${mail.returnPath}>`,
        `Original-Rcpt-To: <${recipient.address}>`,
        `Arrival-Date: ${smtpDate(mail.arrivedAt)}`,
        `Reporting-MTA: dns; ${reporter}`,
        'Source-IP: 127.0.0.1',
      ],
    ],
  });
}

interface ReportParts {
  to: string;
  reportType: 'delivery-status' | 'feedback-report';
  subject: string;
  text: string;
  /** Groups of fields, separated by an empty line. */
  machinePart: string[][];
}

/** RFC 6522: a human-readable part, a machine-readable part and the reported header. */
function buildReport(reporter: string, mail: ReportedMail, parts: ReportParts): Promise<Buffer> {
  const report = new MimeNode(`multipart/report; report-type=${parts.reportType}`, { hostname: reporter });
  report.setHeader({
    from: `Mail Delivery System <MAILER-DAEMON@${reporter}>`,
    to: parts.to,
    subject: parts.subject,
    'auto-submitted': 'auto-replied',
  });
  report.createChild('text/plain; charset=us-ascii').setContent(parts.text);
  report
    .createChild(`message/${parts.reportType}`)
    .setContent(parts.machinePart.map((block) => `${block.join('\r\n')}\r\n`).join('\r\n'));
  report.createChild('text/rfc822-headers').setContent(mail.headers);
  return report.build();
}

/** RFC 5322 date in UTC. */
export function smtpDate(value: Date): string {
  return value.toUTCString().replace('GMT', '+0000');
}
