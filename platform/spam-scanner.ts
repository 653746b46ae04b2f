import type { Readable } from 'node:stream';

export interface ScanEnvelope {
  sizeBytes: number;
  /** Empty string if unknown. */
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
  /** @throws Error if the scanner does not respond in time, or if its response is invalid. */
  scan(raw: Readable, envelope: ScanEnvelope): Promise<ScanResult>;
}

/** rspamd actions that mean spam. `greylist` and `soft reject` request a retry, which is no longer possible. */
const SPAM_ACTIONS = new Set(['reject', 'discard', 'quarantine', 'add header', 'rewrite subject']);
const MAX_RESPONSE_BYTES = 1024 * 1024;

/**
 * Scans with rspamd over HTTP, `POST /checkv2` (https://docs.rspamd.com/developers/protocol). The operator configures the
 * address, so a private one is allowed.
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
      const result = await readJsonResponse(response);
      if (!response.ok) throw new Error(`rspamd responded with status ${response.status}`);
      const { action, score } = result as Record<string, unknown>;
      if (typeof action !== 'string' || typeof score !== 'number' || !Number.isFinite(score))
        throw new Error('The rspamd response has no action or no score');
      // `is_skipped` is ignored: rspamd also sets it, with a valid action, if a rule decided before the scan.
      return { isSpam: SPAM_ACTIONS.has(action), score };
    },
  };
}

async function readJsonResponse(response: Response): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    sizeBytes += chunk.byteLength;
    if (sizeBytes > MAX_RESPONSE_BYTES) throw new Error('The rspamd response exceeds 1 MiB');
    chunks.push(chunk);
  }
  const result: unknown = JSON.parse(Buffer.concat(chunks).toString());
  if (typeof result !== 'object' || result === null) throw new Error('The rspamd response is not an object');
  return result;
}

/** Removes characters that a header value must not contain, because the sender chose the text. */
function toHeaderValue(value: string): string {
  return value.replace(/[^\x21-\x7e]/g, '').slice(0, 320);
}
