import type { Db } from '../../platform/database/tables.ts';
import { raiseAlarm } from '../messages/injection-alarms.ts';
import type { Message } from '../messages/message.entity.ts';
import { toAddressKey } from '../mime/mail-address.ts';
import { findNamedAddresses, MAX_NAMED_ADDRESSES } from '../mime/message-findings.ts';
import type { ParsedInboundMail } from '../mime/parser/pool.ts';

type AlarmedMessage = Pick<Message, 'id' | 'organizationId' | 'environmentId' | 'inboxId' | 'threadId'>;

interface AlarmedMail {
  mail: ParsedInboundMail;
  /** The return path. */
  mailFrom: string;
}

/** Puts the alarm in force that a received message causes, if it causes one. */
export async function raiseAlarmOfMail(
  db: Db,
  { id: messageId, ...place }: AlarmedMessage & { receivedAt: Date },
  { mail, mailFrom }: AlarmedMail,
): Promise<void> {
  if (mail.injection.level !== 'alarm') return;
  await raiseAlarm(db, { ...place, messageId, addresses: findAddresses({ mail, mailFrom }) });
}

/** The addresses that a message brings in: in its header, its return path, its text and its invitations. Null: too many to list. */
function findAddresses({ mail, mailFrom }: AlarmedMail): string[] | null {
  const { from, replyTo, to, cc, headers, invites, attachments, alarmAddresses } = mail;
  const people = [...(from ? [from] : []), ...replyTo, ...to, ...cc];
  const inParts = findNamedAddresses([
    headers.sender ?? '',
    ...people.map(({ name = '' }) => name),
    ...attachments.map(({ filename }) => filename),
    JSON.stringify(invites),
  ]);
  if (alarmAddresses === null || inParts === null) return null;
  const listed = [...people.map(({ email }) => email), mailFrom].flatMap(
    (email) => toAddressKey(email) ?? [],
  );
  const all = [...new Set([...listed, ...inParts, ...alarmAddresses])];
  return all.length > MAX_NAMED_ADDRESSES ? null : all;
}
