import { createSigner } from '../../platform/crypto.ts';
import { idFromBytes, idToBytes } from '../../platform/ids.ts';

/** Who unsubscribes from whom. */
export interface UnsubscribeTarget {
  organizationId: string;
  inboxId: string;
  /** The recipient, as the message was addressed. */
  email: string;
}

/** Signed links for one-click unsubscription (RFC 8058). They do not expire, because people read messages years later. */
export interface UnsubscribeLinks {
  create(target: UnsubscribeTarget): string;
  /** Returns the target of a token; null if its signature is invalid. */
  parse(token: string): UnsubscribeTarget | null;
}

const ID_BYTES = 16;
const SIGNATURE_BYTES = 16;

/**
 * @param signingKey 32 bytes in base64; may list several, separated by commas (`SIGNING_KEY`).
 * @param publicUrl where people reach the service (`PUBLIC_URL`).
 */
export function createUnsubscribeLinks({
  signingKey,
  publicUrl,
}: {
  signingKey: string;
  publicUrl: string;
}): UnsubscribeLinks {
  const signer = createSigner(signingKey, 'unsubscribe', SIGNATURE_BYTES);
  const base = publicUrl.replace(/\/+$/, '');
  return {
    create({ organizationId, inboxId, email }) {
      const target = Buffer.concat([idToBytes(organizationId), idToBytes(inboxId), Buffer.from(email)]);
      const token = Buffer.concat([signer.sign(target), target]).toString('base64url');
      return `${base}/u/${token}`;
    },

    parse(token) {
      const bytes = Buffer.from(token, 'base64url');
      const target = bytes.subarray(SIGNATURE_BYTES);
      if (target.length <= 2 * ID_BYTES) return null;
      if (!signer.verify(target, bytes.subarray(0, SIGNATURE_BYTES))) return null;
      return {
        organizationId: idFromBytes('organization', target.subarray(0, ID_BYTES)),
        inboxId: idFromBytes('inbox', target.subarray(ID_BYTES, 2 * ID_BYTES)),
        email: target.subarray(2 * ID_BYTES).toString(),
      };
    },
  };
}
