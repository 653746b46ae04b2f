import type { Readable } from 'node:stream';

export interface ScanEnvelope {
  sizeBytes: number;
  /** Empty string where it is not known. */
  clientIp: string;
  helo: string | null;
  /** Empty string for `<>`. */
  mailFrom: string;
  rcptTo: string;
}

export interface ScanResult {
  isSpam: boolean;
  score: number;
}

export interface SpamScanner {
  /** @throws Error where the scanner does not answer in time, or answers something else. */
  scan(raw: Readable, envelope: ScanEnvelope): Promise<ScanResult>;
}

/** Actions of rspamd that say that it is spam. `greylist` and `soft reject` ask for another try, which is too late here. */
const SPAM_ACTIONS = new Set(['reject', 'discard', 'quarantine', 'add header', 'rewrite subject']);
const MAX_RESPONSE_BYTES = 1024 * 1024;

/**
 * rspamd over HTTP, `POST /checkv2` (https://docs.rspamd.com/developers/protocol). The operator chose the address, so
 * it may be a private one.
 */
export function createRspamdScanner({ url, timeoutMs }: { url: string; timeoutMs: number }): SpamScanner {
  const endpoint = new URL('checkv2', url.endsWith('/') ? url : `${url}/`);
  return {
    async scan(raw, { sizeBytes, clientIp, helo, mailFrom, rcptTo }) {
      const response = await fetch(endpoint, {
        method: 'POST',
        signal: AbortSignal.timeout(timeoutMs),
        redirect: 'error',
        headers: {
          'content-length': String(sizeBytes),
          'content-type': 'message/rfc822',
          ...(clientIp ? { ip: toHeaderValue(clientIp) } : {}),
          from: toHeaderValue(mailFrom),
          rcpt: toHeaderValue(rcptTo),
          ...(helo ? { helo: toHeaderValue(helo) } : {}),
        },
        body: raw as unknown as ReadableStream,
        duplex: 'half',
      } as RequestInit);
      const answer = await readJsonResponse(response);
      if (!response.ok) throw new Error(`rspamd answered ${response.status}`);
      const { action, score } = answer as Record<string, unknown>;
      if (typeof action !== 'string' || typeof score !== 'number' || !Number.isFinite(score))
        throw new Error('rspamd answered without action and score');
      // `is_skipped` changes nothing: a mail decided on before its turn has it, too, with the action.
      return { isSpam: SPAM_ACTIONS.has(action), score };
    },
  };
}

async function readJsonResponse(response: Response): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > MAX_RESPONSE_BYTES) throw new Error('rspamd answered more than 1 MiB');
    chunks.push(chunk);
  }
  const answer: unknown = JSON.parse(Buffer.concat(chunks).toString());
  if (typeof answer !== 'object' || answer === null) throw new Error('rspamd answered no object');
  return answer;
}

/** A stranger wrote it: only what a header's value may hold. */
function toHeaderValue(value: string): string {
  return value.replace(/[^\x21-\x7e]/g, '').slice(0, 320);
}
