import { BASE_URL } from '../links.ts';
import type { Call } from './openapi.ts';

/** `inboxId` → `$INBOX_ID`. */
const variable = (name: string): string =>
  `$${name.replace(/\B[A-Z]/g, (letter) => `_${letter}`).toUpperCase()}`;

export interface CurlInput {
  contentType: string | undefined;
  body: unknown;
  /** What the operation requires. */
  query: Record<string, string>;
}

/** A call of the operation with curl, which runs once its variables are set. */
export function curlOf({ method, path, operation }: Call, { contentType, body, query }: CurlInput): string {
  const url = BASE_URL + path.replace(/\{(\w+)\}/g, (_whole, name: string) => variable(name));
  const search = Object.keys(query).length === 0 ? '' : `?${new URLSearchParams(query)}`;
  const needsCredential = operation.security?.length !== 0;
  const lines = [
    `curl ${method === 'GET' ? '' : method === 'POST' && body !== undefined ? '' : `-X ${method} `}"${url}${search}"`,
    needsCredential ? `-H "Authorization: Bearer $AGENT_EMAIL_API_KEY"` : '',
    ...bodyLines(contentType, body),
  ];
  return `${lines.filter((line) => line !== '').join(' \\\n  ')}\n`;
}

function bodyLines(contentType: string | undefined, body: unknown): string[] {
  if (contentType === undefined || body === undefined) return [];
  if (contentType.startsWith('multipart/')) return ['-F file=@invoice.pdf'];
  if (contentType !== 'application/json')
    return [`-H "Content-Type: ${contentType}"`, '--data-binary @message.eml'];
  const json = JSON.stringify(body, null, 2).replaceAll("'", "'\\''").replaceAll('\n', '\n  ');
  return ['-H "Content-Type: application/json"', `-d '${json}'`];
}
