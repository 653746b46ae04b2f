import EmailReplyParser from 'email-reply-parser';
import { htmlToText } from '../domain/mime/html-to-text.ts';
import { extractReply } from '../domain/mime/quotes/extract-reply.ts';
import { announcedReplies, type ReplyFixture, wholeMails } from '../test/mime/reply-fixtures.ts';

const parser = new EmailReplyParser();

function libraryReply({ text, html }: ReplyFixture): string {
  return parser.parseReply((text ?? htmlToText(html ?? '')).replaceAll('\r\n', '\n')).trim();
}

/** How many of the project's reply fixtures are extracted exactly. */
export function replyRows(): { what: string; samples: number; right: number }[] {
  const sets = {
    text: [
      ...announcedReplies(),
      ...['text.txt', 'fresh-text.txt', 'second-look.txt'].flatMap((file) => wholeMails(file, 'text')),
    ],
    HTML: ['html.txt', 'fresh-html.txt'].flatMap((file) => wholeMails(file, 'html')),
  };
  return Object.entries(sets).flatMap(([type, mails]) => {
    const exact = (read: (mail: ReplyFixture) => string) =>
      mails.filter((mail) => read(mail).replaceAll('\r\n', '\n') === mail.reply).length;
    return [
      { what: `extracted_text of ${type}, exact`, samples: mails.length, right: exact(extractReply) },
      { what: `${type}, email-reply-parser alone`, samples: mails.length, right: exact(libraryReply) },
    ];
  });
}
