/** `fetch` of text with limits, to URLs that the operator configures. For URLs that customers choose, see `egress/`. */
export type BoundedFetch = (url: string, request?: BoundedFetchRequest) => Promise<Response>;

export interface BoundedFetchRequest {
  method?: string;
  headers?: Record<string, string>;
  body?: RequestInit['body'] | Uint8Array | undefined;
}

const TIMEOUT_MS = 10_000;
const MAX_RESPONSE_BYTES = 1024 * 1024;

/**
 * Limits the total time to ten seconds and the response to 1 MiB, and returns redirects instead of following them, because
 * they could take a client secret elsewhere.
 *
 * @throws Error for a network failure or a response that is too large.
 */
export const boundedFetch: BoundedFetch = async (url, { method = 'GET', headers = {}, body = null } = {}) => {
  const response = await fetch(url, {
    method,
    headers,
    body: body as RequestInit['body'],
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  });
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_RESPONSE_BYTES) throw new Error(`The response of ${new URL(url).host} is too large`);
    chunks.push(chunk);
  }
  const hasBody = ![204, 205, 304].includes(response.status);
  return new Response(hasBody ? Buffer.concat(chunks) : null, {
    status: response.status,
    headers: response.headers,
  });
};
