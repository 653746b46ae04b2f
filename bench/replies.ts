import EmailReplyParser from 'email-reply-parser';
import { textFromHtml } from '../domain/messages/html-text.ts';
import { extractReply } from '../domain/messages/quotes.ts';
import { announcedReplies, type ReplyFixture, wholeMails } from '../test/messages/reply-fixtures.ts';

const parser = new EmailReplyParser();

function libraryReply({ text, html }: ReplyFixture): string {
  return parser.parseReply((text ?? textFromHtml(html ?? '')).replaceAll('\r\n', '\n')).trim();
}

/** How many replies of the project's own fixtures come out exactly as their writers meant them. */
export function benchReplies(): void {
  const sets = {
    texts: [
      ...announcedReplies(),
      ...wholeMails('text.txt', 'text'),
      ...wholeMails('fresh-text.txt', 'text'),
    ],
    HTML: [...wholeMails('html.txt', 'html'), ...wholeMails('fresh-html.txt', 'html')],
  };
  for (const [name, mails] of Object.entries(sets)) {
    const ours = mails.filter((mail) => extractReply(mail).replaceAll('\r\n', '\n') === mail.reply).length;
    const library = mails.filter((mail) => libraryReply(mail) === mail.reply).length;
    const of = mails.length;
    console.log(
      `extracted_text, ${name}: ours ${ours}/${of} exact, email-reply-parser alone ${library}/${of}`,
    );
  }
}
