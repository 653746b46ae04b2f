import { Readable } from 'node:stream';
import { htmlToText } from './html-to-text.ts';
import type { MailAddress } from './mail-address.ts';
import { parseMail } from './parse-mail.ts';
import { removeHidden } from './visible/separate-hidden.ts';

/** An attached message, for reading. */
export interface MailFile {
  /** The main fields of the header by name, without empty ones. */
  fields: [name: string, value: string][];
  body: string;
  /** Names of its files, at most {@link MAX_NAMED_FILES}. */
  files: string[];
  isWhole: boolean;
}

const MAX_NAMED_FILES = 20;
/** Long HTML is then read in a simpler way. */
const HTML_TIMEOUT_MS = 3_000;

/** The text of HTML that people can see. */
export const toVisibleText = (html: string, timeoutMs: number = HTML_TIMEOUT_MS): string =>
  htmlToText(removeHidden(html, timeoutMs), timeoutMs);

/** Reads a message (RFC 5322) that is a file. Like {@link parseMail}, it needs a process that may be killed. */
export async function readMailFile(bytes: Buffer, timeoutMs?: number): Promise<MailFile> {
  const files: string[] = [];
  const mail = await parseMail(Readable.from([bytes], { objectMode: false }), {
    async consumeFile({ filename }, content) {
      if (files.length < MAX_NAMED_FILES) files.push(filename);
      for await (const _ of content);
    },
  });
  const fields: [string, string][] = [
    ['From', mail.from ? showAddress(mail.from) : ''],
    ['To', mail.to.map(showAddress).join(', ')],
    ['Cc', mail.cc.map(showAddress).join(', ')],
    ['Date', mail.headers.date ?? ''],
    ['Subject', mail.subject],
  ];
  return {
    fields: fields.filter(([, value]) => value !== ''),
    body: mail.text ?? (mail.html === null ? '' : toVisibleText(mail.html, timeoutMs)),
    files,
    isWhole: mail.parseError === null,
  };
}

const showAddress = ({ email, name }: MailAddress): string => (name ? `${name} <${email}>` : email);
