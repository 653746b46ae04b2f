import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { type MailReport, readMailReport } from '../domain/delivery-reports/read-report.ts';
import { createParserPool, type ParserPool } from '../domain/mime/parser/pool.ts';

/**
 * `npm run mail:inspect -- <file or folder>…`: prints one line of JSON per message, as the service would parse it.
 * Folders are read recursively, in the order of names.
 */
const PARSER_ENTRY = join(import.meta.dirname, '../workers/mail-parser.ts');
const MAX_CONCURRENT_MESSAGES = availableParallelism();

async function* filesIn(path: string): AsyncGenerator<string> {
  if (!(await stat(path)).isDirectory()) {
    yield path;
    return;
  }
  for (const name of (await readdir(path)).toSorted()) {
    if (!name.startsWith('.')) yield* filesIn(join(path, name));
  }
}

async function inspect(reader: ParserPool, file: string) {
  const report = readMailReport(await readFile(file));
  const mail = await reader.parse(createReadStream(file), {
    organizationId: '',
    storeFile: (_index, content) => measure(content),
  });
  return {
    file,
    kind: report.kind,
    recipients: recipientsOf(report),
    extracted_text: mail.extractedText,
    subject: mail.subject,
    attachments: mail.attachments.map(({ filename, contentType, stored }) => ({
      filename,
      content_type: contentType,
      size_bytes: stored.sizeBytes,
    })),
    parse_error: mail.parseError,
  };
}

function recipientsOf({ recipients, feedback }: MailReport) {
  if (feedback) {
    return feedback.originalRecipients.map((address) => ({
      address,
      action: 'complained',
      feedback_type: feedback.feedbackType,
    }));
  }
  return recipients.map((recipient) => ({
    address: recipient.address,
    action: recipient.action,
    permanence: recipient.permanence,
    sub_type: recipient.subType,
    status: recipient.status,
    diagnostic_code: recipient.diagnosticCode,
    final_recipient: recipient.finalRecipient,
    original_recipient: recipient.originalRecipient,
  }));
}

async function measure(content: Readable) {
  const hash = createHash('sha256');
  let sizeBytes = 0;
  for await (const chunk of content as AsyncIterable<Buffer>) {
    hash.update(chunk);
    sizeBytes += chunk.length;
  }
  return { key: '', stored: { sizeBytes, sha256: hash.digest() } };
}

async function main(paths: string[]): Promise<void> {
  if (paths.length === 0) {
    console.error('Usage: npm run mail:inspect -- <file or folder>…');
    process.exitCode = 2;
    return;
  }
  const reader = createParserPool({ entry: PARSER_ENTRY, processes: MAX_CONCURRENT_MESSAGES });
  const waiting: Promise<unknown>[] = [];
  try {
    for (const path of paths) {
      for await (const file of filesIn(path)) {
        waiting.push(inspect(reader, file));
        if (waiting.length >= MAX_CONCURRENT_MESSAGES) print(await waiting.shift());
      }
    }
    while (waiting.length > 0) print(await waiting.shift());
  } finally {
    await Promise.allSettled(waiting);
    await reader.close();
  }
}

function print(line: unknown): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

await main(process.argv.slice(2));
