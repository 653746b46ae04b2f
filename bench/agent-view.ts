import { Readable } from 'node:stream';
import { presentAgentMessage } from '../api/messages/agent-message.schemas.ts';
import { presentMessage } from '../api/messages/messages.schemas.ts';
import { DEFAULT_CHARACTERS, LISTED_CHARACTERS, readShortText } from '../domain/messages/agent-text.ts';
import type { MessageDetails } from '../domain/messages/message-details.ts';
import { readMessage } from '../domain/mime/message-findings.ts';
import { parseMail } from '../domain/mime/parse-mail.ts';
import { newId } from '../platform/ids.ts';
import { mail } from '../test/support/inbound-mail.ts';
import { buildShopMail, countTokens } from '../test/support/shop-mail.ts';

const SHORT =
  'Hi, the report is ready. Could you look at page four before we meet on Friday? It has the numbers. Thank you, Ada';
const SAMPLES: Record<string, string> = {
  'short message': mail(
    { From: 'Ada <ada@people.example>', To: 'agent@mail.test', Subject: 'Report' },
    SHORT,
  ),
  'sign-in code': mail(
    {
      From: 'Acme <no-reply@acme.example>',
      To: 'agent@mail.test',
      Subject: 'Your code',
      'Content-Type': 'text/html',
    },
    '<p>Your verification code is <b>482913</b>. It expires in ten minutes.</p><p><a href="https://acme.example/verify?t=4f3a9c1">Verify your email</a></p>',
  ),
  'shop, 20 items and 25 links': buildShopMail(),
};

/** `npm run bench -- agent`: tokens (bytes of JSON / 4) of received messages, in the full view and in the view for agents. */
export async function benchAgentView(): Promise<void> {
  const rows: Record<string, object> = {};
  for (const [name, raw] of Object.entries(SAMPLES)) {
    const details = await toDetails(raw);
    const present = (characters: number, isListed: boolean) =>
      presentAgentMessage(details, {
        text: readShortText(details.message, characters),
        isListed,
        isSuppressed: () => false,
      });
    rows[name] = {
      'view=full': countTokens(presentMessage(details)),
      'view=agent': countTokens(present(DEFAULT_CHARACTERS, false)),
      'in a list': countTokens(present(LISTED_CHARACTERS, true)),
    };
  }
  console.table(rows);
}

/** What the database returns for a message that was just received. */
async function toDetails(raw: string): Promise<MessageDetails> {
  const parsed = await parseMail(Readable.from([Buffer.from(raw)]), {
    async consumeFile(_file, content) {
      for await (const _chunk of content);
    },
  });
  const { from, text, html, ...header } = parsed;
  const { extractedText, preview, hiddenText, codes, links } = readMessage(parsed, { text, html });
  const now = new Date();
  const message = {
    ...header,
    ...{
      id: newId('message'),
      threadId: newId('thread'),
      inboxId: newId('inbox'),
      environmentId: newId('environment'),
    },
    ...{
      direction: 'inbound',
      status: 'received',
      fromEmail: from?.email ?? '',
      fromName: from?.name ?? null,
    },
    ...{
      textBody: text,
      htmlBody: html,
      extractedText,
      preview,
      hiddenText,
      codes,
      links,
      invites: [],
      bcc: [],
    },
    ...{ authentication: { spf: 'pass', dkim: 'pass', dmarc: 'pass' }, spam: { verdict: 'ham', score: 0 } },
    ...{ rfcMessageId: parsed.messageId, labels: [], signals: [], hasAttachments: false, automated: false },
    ...{ sizeBytes: raw.length, createdAt: now, receivedAt: now, queuedAt: null, sentAt: null },
    ...{ deliveredAt: null, bouncedAt: null, complainedAt: null, statusDetail: null, hasMoreLinks: false },
  };
  return { message: message as unknown as MessageDetails['message'], recipients: [], attachments: [] };
}
