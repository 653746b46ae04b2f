import { sanitizeFileName } from '../mime/file-name.ts';

/** Common file systems allow 255 bytes. The difference leaves space for `_` and for programs that append a number. */
const MAX_BYTES = 200;
/** Reserved device names in Windows, with any extension (Microsoft, "Naming Files, Paths, and Namespaces"). */
const WINDOWS_DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i;

export const messagePath = (messageId: string): string => `messages/${messageId}.eml`;

/**
 * Path of an attachment in the archive. Each attachment has its own folder, because names repeat, and a name that is
 * valid on all common file systems and cannot escape the folder. The row of the attachment has the sender's file name.
 */
export function attachmentPath(attachmentId: string, filename: string): string {
  return `attachments/${attachmentId}/${toSafeName(filename)}`;
}

function toSafeName(given: string): string {
  const name = (sanitizeFileName(given) ?? '')
    .normalize('NFC')
    // Format characters are invisible; the others are reserved on some file systems.
    .replace(/\p{Cf}/gu, '')
    .replace(/[<>:"|?*]/g, '_')
    // Windows drops trailing dots and spaces, so two names could become one.
    .replace(/[. ]+$/, '');
  const cut = truncateBytes(name, MAX_BYTES);
  if (cut === '') return 'attachment';
  // A leading dot hides a file; a leading dash reads as a command-line option.
  return WINDOWS_DEVICE.test(cut) || /^[.-]/.test(cut) ? `_${cut}` : cut;
}

/** Truncates the stem of a long name and keeps its extension. */
function truncateBytes(name: string, limit: number): string {
  if (Buffer.byteLength(name) <= limit) return name;
  const extension = /\.[^.\s]{1,32}$/u.exec(name)?.[0] ?? '';
  const kept = Buffer.byteLength(extension) < limit ? extension : '';
  let stem = '';
  let bytes = Buffer.byteLength(kept);
  for (const character of name.slice(0, name.length - kept.length)) {
    bytes += Buffer.byteLength(character);
    if (bytes > limit) break;
    stem += character;
  }
  return stem.replace(/[. ]+$/, '') + kept;
}
