import type { OptionsOf } from '../../platform/options-of.ts';
import { createRequestService } from './request.service.ts';
import { createRequestRecorder } from './request-recorder.ts';

/** The log of the API's calls. */
export function createRequests(
  options: OptionsOf<typeof createRequestRecorder> & OptionsOf<typeof createRequestService>,
) {
  return { requestRecorder: createRequestRecorder(options), requests: createRequestService(options) };
}
