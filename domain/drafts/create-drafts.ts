import type { OptionsOf } from '../../platform/options-of.ts';
import { createApprovalService } from './approval.service.ts';
import { createApprovedRecipientService } from './approved-recipient.service.ts';
import { createDraftPreviewService } from './draft-preview.service.ts';

type Options = OptionsOf<typeof createApprovalService> & OptionsOf<typeof createDraftPreviewService>;

/** What the API does with drafts, besides the draft service, which workers have, too. */
export function createDrafts(options: Options) {
  return {
    approvals: createApprovalService(options),
    draftPreviews: createDraftPreviewService(options),
    approvedRecipients: createApprovedRecipientService(options),
  };
}
