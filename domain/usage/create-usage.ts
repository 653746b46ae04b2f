import type { OptionsOf } from '../../platform/options-of.ts';
import { createApiCallMeter } from './api-call-meter.ts';
import { createLimitService } from './limit.service.ts';
import { createUsageService } from './usage.service.ts';

/** What organizations use, and their limits. */
export function createUsage(
  options: OptionsOf<typeof createApiCallMeter> & OptionsOf<typeof createLimitService>,
) {
  return {
    apiCalls: createApiCallMeter(options),
    usage: createUsageService(options),
    limits: createLimitService(options),
  };
}
