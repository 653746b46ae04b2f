import { readFile } from 'node:fs/promises';
import { basename, extname } from 'node:path';
import { usageError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import type { FileInput } from '../sdk.ts';
import { decode, readAll } from './read-input.ts';

/** Options of every command that writes a message. */
export interface BodyOptions {
  text?: string;
  /** `-`: standard input. */
  textFile?: string;
  htmlFile?: string;
  attach?: string[];
}

export interface Body {
  /** Null if there is only HTML. */
  text_body: string | null;
  html_body?: string;
}

/** The body from the options, or from a standard input that is not a terminal. */
export async function readBody(
  { stdin }: Pick<Context, 'stdin'>,
  { text, textFile, htmlFile }: BodyOptions,
): Promise<Body> {
  if (text !== undefined && textFile !== undefined) throw usageError('Give either --text or --text-file.');
  const html = htmlFile === undefined ? {} : { html_body: decode(await readOwnFile(htmlFile), htmlFile) };
  if (text !== undefined) return { text_body: text, ...html };
  if (textFile !== undefined && textFile !== '-')
    return { text_body: decode(await readOwnFile(textFile), textFile), ...html };
  if (textFile === undefined && (htmlFile !== undefined || stdin.isTTY)) {
    if (htmlFile !== undefined) return { text_body: null, ...html };
    throw usageError(
      'The message has no body.',
      'Give --text, --text-file or --html-file, or pipe the text in.',
    );
  }
  const piped = await readAll(stdin);
  if (piped.trim() === '' && htmlFile === undefined)
    throw usageError(
      'The standard input is empty.',
      'Give --text, --text-file or --html-file, or pipe the text in.',
    );
  return { text_body: piped, ...html };
}

/** The files to attach. Their recipients see the last part of each path. */
export const readFiles = (paths: readonly string[] = []): Promise<FileInput[]> =>
  Promise.all(
    paths.map(async (path) => ({
      filename: basename(path),
      content: await readOwnFile(path),
      content_type: TYPES[extname(path).toLowerCase()] ?? 'application/octet-stream',
    })),
  );

async function readOwnFile(path: string): Promise<Buffer> {
  return readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw usageError(`${path} cannot be read: ${error.code ?? error.message}.`);
  });
}

const TYPES: Record<string, string> = {
  '.csv': 'text/csv',
  '.docx': 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  '.eml': 'message/rfc822',
  '.gif': 'image/gif',
  '.html': 'text/html',
  '.ics': 'text/calendar',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.pptx': 'application/vnd.openxmlformats-officedocument.presentationml.presentation',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
  '.webp': 'image/webp',
  '.xlsx': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  '.xml': 'application/xml',
  '.zip': 'application/zip',
};
