import type { OptionsOf } from '../../platform/options-of.ts';
import { createBulkJobService } from './bulk-job.service.ts';
import { createDeliveryControlService } from './delivery-control.service.ts';
import { createWebhookEndpointService } from './endpoint.service.ts';

type Options = OptionsOf<typeof createWebhookEndpointService> &
  OptionsOf<typeof createDeliveryControlService> &
  OptionsOf<typeof createBulkJobService>;

/** The services of the API for webhook endpoints and their deliveries. */
export function createWebhooks(options: Options) {
  return {
    webhookEndpoints: createWebhookEndpointService(options),
    webhookDeliveries: createDeliveryControlService(options),
    webhookJobs: createBulkJobService(options),
  };
}
