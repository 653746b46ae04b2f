import type { SMTPServer, SMTPServerSession } from 'smtp-server';
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

/**
 * Calls `report` for each such reply of the session's connection. MAIL is refused before the recipients are known, but most
 * servers send RCPT along with it (RFC 2920), so that the refusal of a size is reported after the commands that follow.
 *
 * @returns reports what is left when the connection closes.
 */
export function watchBuiltInRefusals(
  { connections }: Pick<SMTPServer, 'connections'>,
  session: SMTPServerSession,
  report: (refusal: BuiltInRefusal) => void,
): () => void {
  const connection = [...connections].find(({ id }) => id === session.id);
  if (!connection) return () => undefined;
  let sender: string | null = null;
  let recipient: string | undefined;
  let oversized: { error: SmtpError; sender: string | null; recipients: string[] } | undefined;
  const reportOversized = () => {
    if (oversized) report({ stage: 'mail', ...oversized });
    oversized = undefined;
  };
  const onCommand = connection._onCommand.bind(connection);
  connection._onCommand = (command, callback) => {
    const line = command.toString();
    recipient = readPath('RCPT TO', line);
    if (recipient === undefined) reportOversized();
    else if (oversized && recipient !== '' && oversized.recipients.length < MAX_NAMED_RECIPIENTS)
      oversized.recipients.push(recipient);
    sender = readPath('MAIL FROM', line) ?? sender;
    return onCommand(command, callback);
  };
  const send = connection.send.bind(connection);
  connection.send = (code, data, ...context) => {
    const text = Array.isArray(data) ? data.join(' ') : String(data ?? '');
    const known =
      code >= 400 && text.startsWith('Error:') ? BUILT_IN.find((entry) => entry.text.test(text)) : undefined;
    if (known) {
      const { stage, reason } = known;
      const error = new SmtpError(code, text, reason);
      if (stage === 'mail' && reason === 'message_too_large') oversized = { error, sender, recipients: [] };
      else report({ stage, error, sender, recipients: recipient ? [recipient] : [] });
    }
    return send(code, data, ...context);
  };
  return reportOversized;
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
