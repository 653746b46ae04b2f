import { type Static, Type } from 'typebox';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import {
  INVITATION_STATUSES,
  type Invitation,
  statusOf,
} from '../../domain/invitations/invitation.entity.ts';
import { minimalOf } from '../minimal-response.ts';
import { password, token } from '../people/auth.schemas.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

export const InvitationRecord = resource(
  'invitation',
  {
    id: id('Id of the invitation (inv_…).'),
    email: text(254),
    role: enumOf(MEMBER_ROLES),
    status: enumOf(INVITATION_STATUSES),
    invited_by_user_id: nullableText(128, { description: 'Null if an API key invited.' }),
    invited_by_key_id: nullableText(128),
    expires_at: timestamp(),
    accepted_at: nullableTimestamp(),
    created_at: timestamp(),
  },
  { $id: 'Invitation', title: 'Invitation' },
);
export const MinimalInvitation = minimalOf(InvitationRecord, ['id', 'status']);

export const CreateInvitation = strictObject(
  {
    email: text(254, {
      minLength: 3,
      description: 'The person’s address. Only it can accept the invitation.',
    }),
    role: enumOf(MEMBER_ROLES, { description: 'Not above the role of the caller.' }),
  },
  { $id: 'CreateInvitation', title: 'CreateInvitation' },
);

export const AcceptInvitation = strictObject(
  {
    token,
    name: Type.Optional(
      text(200, { minLength: 1, description: 'For a new account: at most 50 characters.' }),
    ),
    password: Type.Optional(password('For a new account: at least 12 characters.')),
  },
  { $id: 'AcceptInvitation', title: 'AcceptInvitation' },
);

export function presentInvitation(invitation: Invitation): Static<typeof InvitationRecord> {
  return {
    object: 'invitation',
    id: invitation.id,
    email: invitation.email,
    role: invitation.role,
    status: statusOf(invitation),
    invited_by_user_id: invitation.invitedByUserId,
    invited_by_key_id: invitation.invitedByKeyId,
    expires_at: invitation.expiresAt.toISOString(),
    accepted_at: invitation.acceptedAt?.toISOString() ?? null,
    created_at: invitation.createdAt.toISOString(),
  };
}
