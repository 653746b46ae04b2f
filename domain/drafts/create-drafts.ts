import type { OptionsOf } from '../../platform/options-of.ts';
import { createApprovalService } from './approval.service.ts';
import { createApprovedRecipientService } from './approved-recipient.service.ts';
import { createDecisionWaitService } from './decision-wait.service.ts';
import { createDraftPreviewService } from './draft-preview.service.ts';

type Options = OptionsOf<typeof createApprovalService> &
  OptionsOf<typeof createDecisionWaitService> &
  OptionsOf<typeof createDraftPreviewService>;

/** The services of the API for drafts, except the draft service, which workers also use. */
export function createDrafts(options: Options) {
  return {
    approvals: createApprovalService(options),
    decisionWaits: createDecisionWaitService(options),
    draftPreviews: createDraftPreviewService(options),
    approvedRecipients: createApprovedRecipientService(options),
  };
}
