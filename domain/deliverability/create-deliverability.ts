import type { Database } from '../../platform/database/database.ts';
import type { SharedDomainLimit } from './daily-allowances.ts';
import { createListService } from './list.service.ts';
import { createSendAllowanceService } from './send-allowance.service.ts';
import { createSuppressionService } from './suppression.service.ts';
import { createUnsubscribeService } from './unsubscribe.service.ts';
import type { UnsubscribeLinks } from './unsubscribe-links.ts';

/** The services of the API for suppressions, lists, unsubscribe links, and what may still be sent. */
export function createDeliverability({
  database,
  unsubscribeLinks,
  sharedDomainLimit,
  authenticatesMail,
}: {
  database: Database;
  unsubscribeLinks: UnsubscribeLinks;
  authenticatesMail: boolean;
  sharedDomainLimit?: SharedDomainLimit | undefined;
}) {
  return {
    unsubscriptions: createUnsubscribeService({ database, links: unsubscribeLinks }),
    suppressions: createSuppressionService({ database }),
    sendAllowances: createSendAllowanceService({ database, sharedDomainLimit }),
    allowBlockLists: createListService({ database, authenticatesMail }),
  };
}
