import type { Database } from '../../platform/database/database.ts';
import { createListService } from './list.service.ts';
import { createSuppressionService } from './suppression.service.ts';
import { createUnsubscribeService } from './unsubscribe.service.ts';
import type { UnsubscribeLinks } from './unsubscribe-links.ts';

/** The services of the API for suppressions, lists and unsubscribe links. */
export function createDeliverability({
  database,
  unsubscribeLinks,
}: {
  database: Database;
  unsubscribeLinks: UnsubscribeLinks;
}) {
  return {
    unsubscriptions: createUnsubscribeService({ database, links: unsubscribeLinks }),
    suppressions: createSuppressionService({ database }),
    allowBlockLists: createListService({ database }),
  };
}
