import { type Query, withQuery } from './links.ts';

/** The call of the API that gives what a page shows. */
export interface ApiCall {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** Under `/api/v1`, with its leading slash. */
  path: string;
  query?: Query;
  body?: object;
}

/** A curl command for people to copy. It names the key, and never holds one. */
export function toCurl(
  { method = 'GET', path, query = {}, body }: ApiCall,
  { publicUrl, environmentId }: { publicUrl: string; environmentId: string | undefined },
): string {
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}'${quote(`${publicUrl}/api/v1${withQuery(path, query)}`)}'`,
    '-H "Authorization: Bearer $API_KEY"',
    ...(environmentId === undefined ? [] : [`-H 'x-env-id: ${quote(environmentId)}'`]),
    ...(body === undefined
      ? []
      : [`-H 'content-type: application/json'`, `-d '${quote(JSON.stringify(body))}'`]),
  ];
  return lines.join(' \\\n  ');
}

/** Inside single quotes of a shell. */
const quote = (text: string): string => text.replaceAll("'", String.raw`'\''`);
