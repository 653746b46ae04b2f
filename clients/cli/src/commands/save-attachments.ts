import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CliError, EXIT, usageError } from '../cli-error.ts';
import type { AgentEmail } from '../sdk.ts';

export interface SavedAttachment {
  id: string;
  path: string;
}

/** The service stores no larger files. */
const MAX_BYTES = 64 * 1024 * 1024;
const TIMEOUT_MS = 300_000;
const MAX_NAME_BYTES = 200;

/**
 * Saves the files of a message into a folder, under their base names.
 *
 * @throws CliError if a file of that name exists, without `force`; nothing is followed or overwritten then.
 */
export async function saveAttachments(
  client: AgentEmail,
  attachments: readonly { id: string; filename: string }[],
  { folder, force }: { folder: string; force: boolean },
): Promise<SavedAttachment[]> {
  await mkdir(folder, { recursive: true });
  const taken = new Set<string>();
  const saved: SavedAttachment[] = [];
  for (const { id, filename } of attachments) {
    const path = join(folder, nameOnce(safeName(filename) || id, taken));
    await save(path, await download(client, id), force);
    saved.push({ id, path });
  }
  return saved;
}

/**
 * The last part of a name that a stranger chose, as every file system takes it. Empty if nothing is left: no path, no hidden
 * file, no device, no characters that hide or reorder the name.
 */
export function safeName(filename: string): string {
  const base = filename.normalize('NFC').split(/[/\\]/).at(-1) ?? '';
  const plain = base
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}\p{Cn}<>:"|?*]/gu, '_')
    .replace(/^[.\s]+|[.\s]+$/g, '');
  const name = /^(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$)/i.test(plain) ? `_${plain}` : plain;
  const dot = name.lastIndexOf('.');
  const extension = dot > 0 && name.length - dot <= 16 ? name.slice(dot) : '';
  return (
    cutBytes(name.slice(0, name.length - extension.length), MAX_NAME_BYTES - Buffer.byteLength(extension)) +
    extension
  );
}

function cutBytes(text: string, maxBytes: number): string {
  let kept = '';
  for (const character of text) {
    if (Buffer.byteLength(kept + character) > maxBytes) break;
    kept += character;
  }
  return kept;
}

/** Two files of one message may have the same name. Names that differ in case are the same on some file systems. */
function nameOnce(name: string, taken: Set<string>): string {
  const dot = name.lastIndexOf('.');
  const [stem, extension] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ''];
  let candidate = name;
  for (let number = 2; taken.has(candidate.toLowerCase()); number++)
    candidate = `${stem} (${number})${extension}`;
  taken.add(candidate.toLowerCase());
  return candidate;
}

/** The link carries its own permission, so the credential stays here. */
async function download(client: AgentEmail, id: string): Promise<Uint8Array> {
  const { download_url, sha256, size_bytes } = await client.attachments.get(id);
  if (size_bytes > MAX_BYTES) throw damaged(id, 'It is larger than the service stores.');
  const response = await fetch(download_url, { redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
  if (!response.ok) throw damaged(id, `Its storage answered ${response.status}.`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    throw damaged(id, 'What arrived is not the file that the service describes.');
  return bytes;
}

const damaged = (id: string, detail: string) =>
  new CliError(`The attachment ${id} cannot be saved. ${detail}`, {
    exitCode: EXIT.api,
    code: 'download_failed',
    fix: 'Try again.',
  });

async function save(path: string, bytes: Uint8Array, force: boolean): Promise<void> {
  if (!force)
    return writeFile(path, bytes, { flag: 'wx' }).catch((error: NodeJS.ErrnoException) => {
      throw error.code === 'EEXIST'
        ? usageError(`${path} exists.`, 'Choose another folder, or replace it with --force.')
        : error;
    });
  // A link in the place of the file is replaced, not followed.
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeFile(draft, bytes, { flag: 'wx' });
    await rename(draft, path);
  } finally {
    await rm(draft, { force: true });
  }
}
