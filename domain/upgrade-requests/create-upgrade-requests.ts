import type { OptionsOf } from '../../platform/options-of.ts';
import { createUpgradeDecisionService } from './upgrade-decision.service.ts';
import { createUpgradeRequestService } from './upgrade-request.service.ts';

/** Requests for a higher tier or limit, and what staff decide. */
export function createUpgradeRequests(
  options: OptionsOf<typeof createUpgradeRequestService> & OptionsOf<typeof createUpgradeDecisionService>,
) {
  return {
    upgradeRequests: createUpgradeRequestService(options),
    upgradeDecisions: createUpgradeDecisionService(options),
  };
}
