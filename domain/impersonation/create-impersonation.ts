import type { OptionsOf } from '../../platform/options-of.ts';
import { createImpersonationService } from './impersonation.service.ts';
import { createImpersonationRecord } from './impersonation-record.ts';

/** Impersonations by staff, and the record of their calls. */
export function createImpersonation(options: OptionsOf<typeof createImpersonationService>) {
  return {
    impersonations: createImpersonationService(options),
    recordImpersonatedCall: createImpersonationRecord(options),
  };
}
