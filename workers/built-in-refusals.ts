import type { LogEntry, Logger } from 'nodemailer/lib/shared';
import type { SMTPServerSession } from 'smtp-server';
import type { RefusalReason, RefusalStage } from '../domain/refusals/refusal.entity.ts';
import { SmtpError } from './smtp-data.ts';

/**
 * Replies with which smtp-server itself refuses a command, before it asks the listener: a size that is declared too large,
 * the recipient after the last one, an address with a syntax error, a login without TLS. Its texts start with `Error:`,
 * those of the listeners with an enhanced status code.
 */
const BUILT_IN: readonly { text: RegExp; stage: RefusalStage; reason: RefusalReason }[] = [
  { text: /exceeds fixed maximum message size/, stage: 'mail', reason: 'message_too_large' },
  { text: /Bad sender address syntax/, stage: 'mail', reason: 'wrong_sender' },
  { text: /too many recipients/, stage: 'rcpt', reason: 'too_many_recipients' },
  { text: /Bad recipient address syntax/, stage: 'rcpt', reason: 'invalid_recipient' },
  { text: /authentication Required/, stage: 'mail', reason: 'not_authenticated' },
  { text: /Must issue a STARTTLS command first/, stage: 'auth', reason: 'not_authenticated' },
];

export interface BuiltInRefusal {
  stage: RefusalStage;
  error: SmtpError;
  /** Envelope sender; null before MAIL. */
  sender: string | null;
  /** Those that the refusal concerns, as far as the client named them. */
  recipients: readonly string[];
}

/** Recipients of a message that is declared too large; further ones are not reported. */
const MAX_NAMED_RECIPIENTS = 100;

/** What is known of a connection. */
interface Watched {
  session: SMTPServerSession;
  /** Of the last MAIL. */
  sender: string | null;
  /** Of the last command, if that was RCPT. */
  recipient?: string | undefined;
  /** A refusal that is reported after the commands that follow. */
  oversized?: { error: SmtpError; sender: string | null; recipients: string[] } | undefined;
}

/**
 * Reports each such reply. The server tells a logger of every command and reply; it has no event for them. MAIL is refused before
 * the recipients are known, but most servers send RCPT along with it (RFC 2920), so that the refusal of a size is reported after
 * the commands that follow.
 *
 * @returns the logger for the server, and what to call when a session begins and ends. The logger is set when the server is
 * constructed: given as an option, the server warns of its certificate for localhost, which development uses.
 */
export function watchBuiltInRefusals(report: (refusal: BuiltInRefusal, session: SMTPServerSession) => void): {
  logger: Logger;
  begin(session: SMTPServerSession): void;
  end(session: SMTPServerSession): void;
} {
  const connections = new Map<unknown, Watched>();

  function reportOversized(watched: Watched): void {
    if (watched.oversized) report({ stage: 'mail', ...watched.oversized }, watched.session);
    watched.oversized = undefined;
  }

  function onCommand(watched: Watched, line: string): void {
    const recipient = readPath('RCPT TO', line);
    watched.recipient = recipient;
    if (recipient === undefined) reportOversized(watched);
    else if (
      recipient !== '' &&
      watched.oversized &&
      watched.oversized.recipients.length < MAX_NAMED_RECIPIENTS
    )
      watched.oversized.recipients.push(recipient);
    watched.sender = readPath('MAIL FROM', line) ?? watched.sender;
  }

  function onReply(watched: Watched, reply: string): void {
    const [, code, text = ''] = /^([45]\d\d)(?: [45]\.\d+\.\d+)? (Error:.*)$/s.exec(reply) ?? [];
    const known = code === undefined ? undefined : BUILT_IN.find((entry) => entry.text.test(text));
    if (!known) return;
    const { stage, reason } = known;
    const { session, sender, recipient } = watched;
    const error = new SmtpError(Number(code), text, reason);
    if (reason === 'message_too_large') watched.oversized = { error, sender, recipients: [] };
    else report({ stage, error, sender, recipients: recipient ? [recipient] : [] }, session);
  }

  const ignore = () => undefined;
  return {
    logger: {
      debug(entry: LogEntry | string | undefined, _format?: string, line?: unknown) {
        const { tnx, cid } = typeof entry === 'object' ? entry : {};
        const watched = connections.get(cid);
        if (watched && tnx === 'command') onCommand(watched, String(line));
        if (watched && tnx === 'send') onReply(watched, String(line));
      },
      trace: ignore,
      info: ignore,
      warn: ignore,
      error: ignore,
      fatal: ignore,
    },
    begin: (session) => void connections.set(session.id, { session, sender: null }),
    end(session) {
      const watched = connections.get(session.id);
      connections.delete(session.id);
      if (watched) reportOversized(watched);
    },
  };
}

/** The address of a command, for example `RCPT TO:<ada@people.example>`; empty for `<>`. */
function readPath(name: 'MAIL FROM' | 'RCPT TO', line: string): string | undefined {
  if (
    !line
      .slice(0, name.length + 1)
      .toUpperCase()
      .startsWith(`${name}:`)
  )
    return undefined;
  const [, path] = /^ ?<([^<>\s]{0,320})>/.exec(line.slice(name.length + 1)) ?? [];
  return path;
}
