import type { SpamScanner } from '../../platform/spam-scanner.ts';
import type { SpamVerdict } from '../messages/message.entity.ts';
import type { Authentication } from './mail-authentication.ts';
import type { RawMail } from './raw-mail.ts';
import type { Receipt } from './receipt.entity.ts';

export type ScanForSpam = (
  raw: RawMail,
  envelope: Pick<Receipt, 'clientIp' | 'helo' | 'mailFrom' | 'rcptTo'>,
) => Promise<SpamVerdict | null>;

/** Used without a scanner: {@link deriveSpamVerdict} applies. */
export const skipSpamScan: ScanForSpam = async () => null;

/**
 * Scans messages. If the scanner fails or times out, the message is not delayed and its verdict is `unscanned`.
 *
 * @param onFailure logs the error.
 */
export function createScanForSpam(scanner: SpamScanner, onFailure: (error: unknown) => void): ScanForSpam {
  return async (raw, { clientIp, helo, mailFrom, rcptTo }) => {
    const bytes = await raw.open();
    try {
      const { isSpam, score } = await scanner.scan(bytes, {
        sizeBytes: raw.sizeBytes,
        clientIp,
        helo: helo ?? null,
        mailFrom,
        rcptTo,
      });
      return { verdict: isSpam ? 'spam' : 'ham', score };
    } catch (error) {
      onFailure(error);
      return { verdict: 'unscanned', score: null };
    } finally {
      bytes.destroy();
    }
  };
}

/**
 * Without a scanner, a message is spam if DMARC fails and the policy of the From domain is reject or quarantine (RFC
 * 9989 section 4.7). Nothing shows that other messages are not spam, so their verdict is `unscanned`.
 */
export function deriveSpamVerdict({ dmarc, policy }: Pick<Authentication, 'dmarc' | 'policy'>): SpamVerdict {
  const isRejectedByPolicy = dmarc === 'fail' && (policy === 'reject' || policy === 'quarantine');
  return { verdict: isRejectedByPolicy ? 'spam' : 'unscanned', score: null };
}
