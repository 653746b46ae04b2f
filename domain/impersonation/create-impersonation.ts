import type { OptionsOf } from '../../platform/options-of.ts';
import { createImpersonationService } from './impersonation.service.ts';
import { createImpersonationRecord } from './impersonation-record.ts';

/** Visits of staff to organizations, and the record of them. */
export function createImpersonation(options: OptionsOf<typeof createImpersonationService>) {
  return {
    impersonations: createImpersonationService(options),
    recordImpersonatedCall: createImpersonationRecord(options),
  };
}
