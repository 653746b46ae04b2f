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

/** Calls `report` for each such reply of the session's connection. */
export function watchBuiltInRefusals(
  { connections }: Pick<SMTPServer, 'connections'>,
  session: SMTPServerSession,
  report: (stage: RefusalStage, error: SmtpError) => void,
): void {
  const connection = [...connections].find(({ id }) => id === session.id);
  if (!connection) return;
  const send = connection.send.bind(connection);
  connection.send = (code, data, ...context) => {
    const text = Array.isArray(data) ? data.join(' ') : String(data ?? '');
    const known =
      code >= 400 && text.startsWith('Error:') ? BUILT_IN.find((entry) => entry.text.test(text)) : undefined;
    if (known) report(known.stage, new SmtpError(code, text, known.reason));
    return send(code, data, ...context);
  };
}
