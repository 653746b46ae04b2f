import { AppError, invalid } from '../../platform/errors.ts';

/**
 * Normalizes the URL. Refuses a target to which no delivery can ever succeed. Whether a name resolves to a private
 * address is checked at each delivery, because the name may resolve differently by then.
 */
export function parseReceiverUrl(text: string, findTargetRefusal: (url: string) => string | null): string {
  const invalidUrl = (message: string, fix: string): AppError => invalid('/body/url', message, fix);
  const url = URL.parse(text);
  if (!url) throw invalidUrl('must be an HTTPS URL', 'Use an address that starts with https://.');
  if (url.username !== '' || url.password !== '')
    throw invalidUrl(
      'must not contain credentials',
      'Remove user and password; verify the signature of each delivery instead.',
    );
  if (url.hash !== '' || text.includes('#'))
    throw invalidUrl(
      'must not have a fragment',
      'Remove everything from # on; it is never sent to a receiver.',
    );
  if (url.href.length > 2048)
    throw invalidUrl('must not be longer than 2,048 characters', 'Use a shorter URL.');
  const refusal = findTargetRefusal(url.href);
  if (refusal !== null) throw targetRefused(refusal);
  return url.href;
}

function targetRefused(refusal: string): AppError {
  return new AppError('unprocessable', {
    detail: `The service would not deliver to this URL: ${refusal}.`,
    fix: 'Use an https:// URL with a public host and the port 443, 80, 8080 or 8443. An operator can allow others with EGRESS_ALLOW and EGRESS_ALLOW_PORTS, except ports that browsers refuse for HTTP.',
    errors: [{ path: '/body/url', message: refusal }],
  });
}
