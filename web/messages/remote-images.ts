import type { Scope } from '../../domain/identity/scope.ts';
import { createSigner } from '../../platform/crypto.ts';

/** Long enough to load the page, and too short to be kept. */
const LIFETIME_MS = 60_000;
const SIGNATURE_BYTES = 16;

export type RemoteImages = ReturnType<typeof createRemoteImages>;

/**
 * The permission to load the images of one message from the servers of strangers, which a person gives by a form. A link that
 * someone else sends to the person cannot give it.
 */
export function createRemoteImages(signingKey: string) {
  const signer = createSigner(signingKey, 'remote images', SIGNATURE_BYTES);
  const subject = ({ actor }: Scope, messageId: string, until: number) =>
    `${messageId} ${actor.kind} ${actor.id} ${until}`;
  return {
    allow(scope: Scope, messageId: string, now = Date.now()): string {
      const until = now + LIFETIME_MS;
      return `${until}.${signer.sign(subject(scope, messageId, until)).toString('base64url')}`;
    },
    /** Never in a support session. @param permission what `allow` has returned, or anything else. */
    areAllowed(scope: Scope, messageId: string, permission = '', now = Date.now()): boolean {
      const [, time = '', signature = ''] = /^(\d{1,15})\.([\w-]{1,64})$/.exec(permission) ?? [];
      const until = Number(time);
      return (
        scope.impersonation === undefined &&
        until > now &&
        signer.verify(subject(scope, messageId, until), Buffer.from(signature, 'base64url'))
      );
    },
  };
}
