import { readMailFile } from '../../mime/file-text.ts';
import type { TextCollector } from './text-collector.ts';
import { UnreadableFileError } from './unreadable-file.ts';

/** Reads an attached message (RFC 5322): its main fields and its text. Its own files are only named. */
export async function readMail(bytes: Buffer, text: TextCollector): Promise<void> {
  const { fields, body, files, isWhole } = await readMailFile(bytes);
  if (fields.length === 0 && body.trim() === '')
    throw new UnreadableFileError('The message has no header and no text.');
  for (const [name, value] of fields) text.add(`${name}: ${value}\n`);
  text.add(`\n${body}`);
  if (files.length > 0) text.leaveOut(`Files of the attached message: ${files.join(', ').slice(0, 1_000)}.`);
  if (!isWhole) text.leaveOut('Parts of the attached message that could not be parsed.');
}
