import type { OptionsOf } from '../../platform/options-of.ts';
import { createAcceptInvitationService } from './accept-invitation.service.ts';
import { createInvitationService } from './invitation.service.ts';

/** Invitations and their acceptance. */
export function createInvitations(
  options: OptionsOf<typeof createInvitationService> & OptionsOf<typeof createAcceptInvitationService>,
) {
  return {
    invitations: createInvitationService(options),
    invitationAcceptance: createAcceptInvitationService(options),
  };
}
