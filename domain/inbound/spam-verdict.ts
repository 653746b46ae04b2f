import type { SpamScanner } from '../../platform/spam-scanner.ts';
import type { SpamVerdict } from '../messages/message.entity.ts';
import type { Authentication } from './mail-authentication.ts';
import type { RawMail } from './raw-mail.ts';
import type { Receipt } from './receipt.entity.ts';

export type ScanForSpam = (
  raw: RawMail,
  envelope: Pick<Receipt, 'clientIp' | 'helo' | 'mailFrom' | 'rcptTo'>,
) => Promise<SpamVerdict | null>;

/** Without a scanner, {@link deriveSpamVerdict} decides. */
export const skipSpamScan: ScanForSpam = async () => null;

/**
 * Scans messages. A scanner that fails or is late delays no message, which is then `unscanned`.
 *
 * @param onFailure for the log.
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
 * The rule without a scanner: DMARC fails, and the policy of the From domain is reject or quarantine (RFC 9989 section
 * 4.7).
 */
export function deriveSpamVerdict({ dmarc, policy }: Pick<Authentication, 'dmarc' | 'policy'>): SpamVerdict {
  const isRejectedByPolicy = dmarc === 'fail' && (policy === 'reject' || policy === 'quarantine');
  return { verdict: isRejectedByPolicy ? 'spam' : 'ham', score: null };
}
