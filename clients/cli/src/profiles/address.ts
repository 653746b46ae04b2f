import { usageError } from '../cli-error.ts';

/** The address of `npm start`. */
export const DEFAULT_BASE_URL = 'http://localhost:3000';

/**
 * Reads the address of a service. Keys go there, so it is https, or http on this computer.
 *
 * @returns without a slash at the end.
 */
export function readBaseUrl(text: string): string {
  const url = parseUrl(text);
  if (!url || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw usageError(`The address ${text} is no URL.`, 'Give one such as https://mail.example.com.');
  if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '')
    throw usageError(
      'The address must have neither a password nor a query nor a fragment.',
      'Give one such as https://mail.example.com.',
    );
  if (url.protocol === 'http:' && !isLoopback(url))
    throw usageError(
      `A key is not sent to ${url.host} over plain http.`,
      'Use an https address. Plain http works only on this computer.',
    );
  return url.href.replace(/\/+$/, '').replace(/\/api\/v1$/, '');
}

/** Undefined for what is no URL. `URL.parse` needs Node 22. */
export const parseUrl = (text: string): URL | undefined => (URL.canParse(text) ? new URL(text) : undefined);

/** Whether only this computer can answer at an address. */
export const isLoopback = ({ hostname }: URL): boolean =>
  hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(hostname);
