import { sanitizeFileName } from '../mime/file-name.ts';

/** Common file systems take names of 255 bytes; the rest is for `_` and programs that add a number. */
const MAX_BYTES = 200;
/** What Windows takes for a device, with any extension (Microsoft, "Naming Files, Paths, and Namespaces"). */
const WINDOWS_DEVICE = /^(?:con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i;

export const messagePath = (messageId: string): string => `messages/${messageId}.eml`;

/**
 * Where an attachment is in the archive: in a folder of its own, since names repeat, under a name that every common file
 * system takes and that stays in its folder, whatever the sender called it. The name given is in the attachment's row.
 */
export function attachmentPath(attachmentId: string, filename: string): string {
  return `attachments/${attachmentId}/${toSafeName(filename)}`;
}

function toSafeName(given: string): string {
  const name = (sanitizeFileName(given) ?? '')
    .normalize('NFC')
    // Format characters hide in names; the others mean something to one file system or another.
    .replace(/\p{Cf}/gu, '')
    .replace(/[<>:"|?*]/g, '_')
    // Windows drops them, and two names would be one.
    .replace(/[. ]+$/, '');
  const cut = truncateBytes(name, MAX_BYTES);
  if (cut === '') return 'attachment';
  // A leading dot hides a file, a leading dash is an option to programs.
  return WINDOWS_DEVICE.test(cut) || /^[.-]/.test(cut) ? `_${cut}` : cut;
}

/** A long name loses the end of its stem and keeps its extension. */
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
