import { readFileSync } from 'node:fs';
import { type ParsedMail, simpleParser } from 'mailparser';
import { eventually } from './eventually.ts';

const TIMEOUT_MS = 30_000;

/** What the SMTP server of the recipients got from an address. */
export function findArrived(mailUi: string, from: string, subject: string): Promise<ParsedMail> {
  return eventually(async () => {
    const shown = (await (await fetch(`${mailUi}/api/email`)).json()) as {
      subject: string;
      source: string;
      from: { address: string }[];
    }[];
    const found = shown.find((mail) => mail.subject === subject && mail.from[0]?.address === from);
    if (!found) throw new Error(`No mail with the subject ${subject} has arrived`);
    return simpleParser(readFileSync(found.source));
  }, TIMEOUT_MS);
}
