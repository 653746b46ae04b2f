import { createFairShare, networkHolder } from '../../platform/concurrency/fair-share.ts';
import type { GuardedFetch } from '../../platform/egress/guarded-fetch.ts';
import { readClientMetadata } from './client-metadata.ts';

/** Of a process. Anybody can name a document, and its server may take its time. */
const MAX_CONCURRENT_DOCUMENTS = 12;
const RESERVED_DOCUMENTS = 4;
/** The draft suggests 5 KB. */
const MAX_DOCUMENT_CHARACTERS = 5 * 1024;

/**
 * Reads metadata documents of clients (Client ID Metadata Documents, draft 02), and answers with what counts of them. Internal
 * addresses are refused by the guard; redirects are returned, which the authorization server takes for a failure.
 *
 * @param findAddress the address of the client of the running request.
 */
export function createDocumentFetch(
  guardedFetch: GuardedFetch,
  findAddress: () => string,
): (url: string) => Promise<Response> {
  const shares = createFairShare({
    name: 'metadata documents',
    capacity: MAX_CONCURRENT_DOCUMENTS,
    reserve: RESERVED_DOCUMENTS,
  });
  return async (url) => {
    const release = shares.tryAcquire({ holders: [networkHolder(findAddress())] });
    if (!release) throw new Error('Too many metadata documents are being read.');
    try {
      return await readDocument(guardedFetch, url);
    } finally {
      release();
    }
  };
}

async function readDocument(guardedFetch: GuardedFetch, url: string): Promise<Response> {
  const response = await guardedFetch(url, { headers: { accept: 'application/json' } });
  if (response.status !== 200) return response;
  const text = await response.text();
  if (text.length > MAX_DOCUMENT_CHARACTERS) throw new Error('The metadata document is too long.');
  const document: unknown = JSON.parse(text);
  if (typeof document !== 'object' || document === null || Array.isArray(document))
    return Response.json(null);
  const metadata = document as Record<string, unknown>;
  // The authorization server refuses a document of another client, and one that contains a secret.
  const { client_id, client_secret } = metadata;
  return Response.json({ ...readClientMetadata(metadata), client_id, client_secret });
}
