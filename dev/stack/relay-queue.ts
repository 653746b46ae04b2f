import { randomUUID } from 'node:crypto';
import type { Log } from './child-process.ts';
import { complaintReport, deliveryReport, type ReportedMail, smtpDate } from './delivery-reports.ts';
import type { Delivery } from './mail-delivery.ts';
import type { MailSpool, SpooledMail, SpooledRecipient } from './mail-spool.ts';
import { type SimulatedOutcome, simulateOutcome } from './simulated-outcome.ts';

export interface RelayQueueOptions {
  hostname: string;
  spool: MailSpool;
  serviceDomains: string[];
  /** The service's inbound listener. */
  inbound: Delivery;
  mailUi: Delivery | undefined;
  /** Address for complaints, as registered with a mailbox provider; undefined: the envelope sender. */
  feedbackAddress: string | undefined;
  log: Log;
}

export interface RelayQueue {
  /** Processes a spooled message until it is settled. */
  start(mail: SpooledMail): void;
  /** Resolves when no message is being processed. */
  drained(): Promise<void>;
}

/** Thrown to leave a message in the spool when the relay stops before it is settled. */
class StoppedError extends Error {}

export function createRelayQueue(options: RelayQueueOptions): RelayQueue {
  const underWay = new Set<Promise<void>>();

  function start(mail: SpooledMail): void {
    const work = settle(mail)
      .catch((error: unknown) => {
        if (!(error instanceof StoppedError))
          options.log(`Relay could not settle message ${mail.id}: ${error}`);
      })
      .finally(() => underWay.delete(work));
    underWay.add(work);
  }

  async function settle(mail: SpooledMail): Promise<void> {
    await Promise.all([show(mail), ...mail.recipients.map((recipient) => settleRecipient(mail, recipient))]);
    await options.spool.remove(mail.id);
  }

  async function show(mail: SpooledMail): Promise<void> {
    if (!mail.shown || !options.mailUi) return;
    const to = mail.recipients.map(({ address }) => address);
    const fate = await passOn(options.mailUi, mail, to);
    if (fate.action === 'failed') options.log(`The mail UI refused message ${mail.id}: ${fate.diagnostic}`);
  }

  async function settleRecipient(mail: SpooledMail, recipient: SpooledRecipient): Promise<void> {
    const forService = isServiceAddress(recipient.address, options.serviceDomains);
    const fate = forService
      ? await passOn(options.inbound, mail, [recipient.address])
      : simulateOutcome(recipient.address);
    // RFC 3464 section 2: a report must not cause another report.
    if (mail.returnPath === '') {
      if (fate.action === 'failed')
        options.log(`A report to ${recipient.address} was lost: ${fate.diagnostic}`);
      return;
    }
    await report(mail, recipient, fate);
  }

  async function passOn(hop: Delivery, mail: SpooledMail, to: string[]): Promise<SimulatedOutcome> {
    const fate = await hop.deliver({ from: mail.returnPath, to }, () => options.spool.read(mail.id));
    if (!fate) throw new StoppedError();
    return fate;
  }

  async function report(
    mail: SpooledMail,
    recipient: SpooledRecipient,
    fate: SimulatedOutcome,
  ): Promise<void> {
    const wanted = isReportRequested(recipient, fate);
    if (!wanted && !fate.complains) return;
    const about: ReportedMail = {
      ...(mail.envelopeId ? { envelopeId: mail.envelopeId } : {}),
      returnPath: mail.returnPath,
      arrivedAt: new Date(mail.arrivedAt),
      headers: await options.spool.headersOf(mail),
    };
    if (wanted) await send(about, await deliveryReport(options.hostname, about, recipient, fate));
    if (!fate.complains) return;
    const to = options.feedbackAddress ?? about.returnPath;
    await send({ ...about, returnPath: to }, await complaintReport(options.hostname, about, recipient, to));
  }

  /** Reports are sent from the null reverse-path (RFC 5321 section 4.5.5). */
  async function send(about: ReportedMail, content: Buffer): Promise<void> {
    const id = newMessageId();
    const mail: SpooledMail = {
      id,
      returnPath: '',
      arrivedAt: new Date().toISOString(),
      trace: `Received: by ${options.hostname} id ${id}; ${smtpDate(new Date())}`,
      recipients: [{ address: about.returnPath }],
      shown: !isServiceAddress(about.returnPath, options.serviceDomains),
    };
    await options.spool.add(mail, content);
    start(mail);
  }

  return {
    start,
    async drained() {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
}

/** RFC 3461 section 4.1: without NOTIFY, failures and delays are reported. */
function isReportRequested({ notify }: SpooledRecipient, { action }: SimulatedOutcome): boolean {
  if (action === 'failed') return notify === undefined || notify.includes('FAILURE');
  if (action === 'delayed') return notify === undefined || notify.includes('DELAY');
  return notify?.includes('SUCCESS') ?? false;
}

export function isServiceAddress(address: string, serviceDomains: string[]): boolean {
  const domain = address.slice(address.lastIndexOf('@') + 1).toLowerCase();
  return serviceDomains.includes(domain);
}

export function newMessageId(): string {
  return randomUUID().replaceAll('-', '').slice(0, 16).toUpperCase();
}
