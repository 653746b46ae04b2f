import type { Logger } from 'pino';
import { type Config, splitList } from '../../platform/config.ts';
import type { Database } from '../../platform/database/database.ts';
import { createEgress, type EgressOptions } from '../../platform/egress/egress.ts';
import type { OptionsOf } from '../../platform/options-of.ts';
import type { SesObjects } from '../../platform/ses-objects.ts';
import { createMailIntake } from './mail-intake.service.ts';
import { createRawMailService } from './raw-mail.service.ts';
import { createSesMailService } from './ses-mail.service.ts';
import { createSesNotificationService } from './ses-notification.service.ts';

type Options = Omit<OptionsOf<typeof createMailIntake>, 'maxSizeBytes'> &
  Pick<OptionsOf<typeof createSesNotificationService>, 'outcomes'> & {
    config: Config;
    /** Connected as a worker, which sees every tenant. */
    workerDatabase: Database;
    sesObjects: SesObjects;
    egressOptions: EgressOptions;
    logger: Logger;
  };

/** Mail and reports that providers deliver over HTTP. */
export function createProviders({
  config,
  workerDatabase,
  sesObjects,
  egressOptions,
  logger,
  ...options
}: Options) {
  const intake = createMailIntake({ ...options, maxSizeBytes: config.INBOUND_MAX_SIZE_BYTES });
  return {
    rawMail: createRawMailService({ intake, secret: config.PROVIDER_RAW_SECRET }),
    sesNotifications: createSesNotificationService({
      database: workerDatabase,
      outcomes: options.outcomes,
      sesMail: createSesMailService({
        intake,
        objects: sesObjects,
        buckets: splitList(config.SES_INBOUND_BUCKETS),
        onUnknownRecipients: (sesMessageId, recipients) =>
          logger.warn({ sesMessageId, recipients }, 'SES received a message for unknown recipients'),
      }),
      egress: createEgress({ ...egressOptions, requireHttps: true }),
      topicArns: splitList(config.SES_TOPIC_ARNS),
    }),
  };
}
