import type { Logger } from 'pino';
import { createInboundActivities } from '../../activities/inbound.activities.ts';
import { deleteExpiredReceipts } from '../../domain/inbound/delete-receipts.ts';
import { createIngestService } from '../../domain/inbound/ingest.service.ts';
import { overdueReceipts } from '../../domain/inbound/overdue-receipts.ts';
import { createParseAgainService } from '../../domain/inbound/parse-again.service.ts';
import { createScanForSpam, type ScanForSpam, skipSpamScan } from '../../domain/inbound/spam-verdict.ts';
import { deleteExpiredReports } from '../../domain/inbound/unattributed-reports.ts';
import { deleteExpiredRefusals } from '../../domain/refusals/delete-refusals.ts';
import type { Config } from '../../platform/config.ts';
import { createRspamdScanner } from '../../platform/spam-scanner.ts';
import { INBOUND_QUEUE } from '../../workflows/task-queues.contract.ts';
import type { Room } from '../room.ts';

export const inboundRoom: Room = {
  activities: {
    [INBOUND_QUEUE]: ({
      config,
      logger,
      database,
      storage,
      outbox,
      metrics,
      services: { outcomes, events, authenticateMail },
      parserPool,
      maxConcurrentReceiving,
    }) =>
      createInboundActivities({
        logger,
        parseAgain: createParseAgainService({
          database,
          storage,
          outbox,
          events,
          parserPool: parserPool(),
        }),
        ingest: createIngestService({
          database,
          storage,
          outbox,
          outcomes,
          events,
          relayedIsDelivered: config.SMTP_RELAYED_IS_DELIVERED,
          parserPool: parserPool(),
          authenticate: authenticateMail,
          scanForSpam: createSpamScan(config, logger),
          onParseFailure: () => metrics.parseFailures.inc(),
          maxConcurrentStores: maxConcurrentReceiving,
          maxConcurrentLargeMessages: Math.max(1, config.MAIL_PARSER_PROCESSES - 1),
        }),
      }),
  },
  maintenance: ({ database }) => ({
    overdue: [overdueReceipts(database)],
    sweeps: {
      expiredReceipts: () => deleteExpiredReceipts(database),
      unattributedReports: () => deleteExpiredReports(database),
      expiredRefusals: () => deleteExpiredRefusals(database),
    },
  }),
};

function createSpamScan(
  { RSPAMD_URL: url, RSPAMD_TIMEOUT_MS: timeoutMs }: Config,
  logger: Logger,
): ScanForSpam {
  if (url === undefined) return skipSpamScan;
  return createScanForSpam(createRspamdScanner({ url, timeoutMs }), (error) =>
    logger.warn({ err: error }, 'rspamd did not scan a message'),
  );
}
