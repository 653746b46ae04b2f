import { networkOf } from '../platform/network.ts';
import { SmtpError } from './smtp-data.ts';

/** Whether a client address has too many open connections, including the new one. */
export function exceedsConnectionLimit(
  connections: Iterable<{ remoteAddress: string }>,
  address: string,
  maxConnections: number,
): boolean {
  const network = networkOf(address);
  let open = 0;
  for (const { remoteAddress } of connections) if (networkOf(remoteAddress) === network) open += 1;
  return open > maxConnections;
}

export function tooManyConnections(): SmtpError {
  return new SmtpError(421, '4.7.0 Too many connections from your address, try again later', 'too_busy');
}
