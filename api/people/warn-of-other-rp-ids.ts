import type { Logger } from 'pino';
import type { PasskeyEnrollmentService } from '../../domain/people/passkeys/passkey-enrollment.service.ts';

/** Passkeys belong to the host name of PUBLIC_URL. If it changed, people who registered one before cannot use it. */
export async function warnOfOtherRpIds(
  passkeys: Pick<PasskeyEnrollmentService, 'findOtherRpIds'>,
  { publicUrl, logger }: { publicUrl: string; logger: Logger },
): Promise<void> {
  const rpIds = await passkeys.findOtherRpIds();
  if (rpIds.length > 0)
    logger.warn(
      { rpIds, publicUrl },
      'passkeys are stored that do not work: they were registered when PUBLIC_URL had another host name',
    );
}
