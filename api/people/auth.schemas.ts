import { type Static, Type } from 'typebox';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import type { Account, Membership } from '../../domain/people/account.service.ts';
import { MAX_PASSWORD_CHARACTERS } from '../../domain/people/password-rules.ts';
import type { SignInResult } from '../../domain/people/start-session.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

export const email = text(254, { minLength: 3, description: 'Email address of the account.' });
export const password = (description: string) => text(MAX_PASSWORD_CHARACTERS, { minLength: 1, description });
export const token = text(200, { minLength: 1, description: 'The mailed token.' });

export const MembershipRecord = resource(
  'membership',
  {
    id: id('Organization (org_…).'),
    name: text(255),
    slug: text(255),
    role: enumOf(MEMBER_ROLES),
    deleted_at: nullableTimestamp(
      'When it was closed; an owner can recover it for 30 days. Null while it is open.',
    ),
  },
  { $id: 'Membership', title: 'Membership' },
);

export const CreateOrganization = strictObject(
  { name: text(200, { minLength: 1, description: 'At most 50 characters, without links.' }) },
  { $id: 'CreateOrganization', title: 'CreateOrganization' },
);

export const UserRecord = resource(
  'user',
  {
    id: id('Id of the user (usr_…).'),
    email,
    email_verified: Type.Boolean(),
    name: nullableText(255),
    avatar_url: nullableText(2_048),
    mfa_enabled: Type.Boolean(),
    organizations: Type.Array(ref(MembershipRecord), { maxItems: 1_000 }),
    created_at: timestamp(),
    deleted_at: nullableTimestamp('When the account was deleted; it can be recovered for 30 days.'),
  },
  { $id: 'User', title: 'User' },
);

export const SignUp = strictObject(
  {
    email,
    password: password('At least 12 characters.'),
    name: text(200, { minLength: 1, description: 'Your name, at most 50 characters.' }),
    organization_name: text(200, { minLength: 1, description: 'At most 50 characters.' }),
  },
  { $id: 'SignUp', title: 'SignUp' },
);
export const SignUpAccepted = resource(
  'acknowledgement',
  { status: enumOf(['verification_sent']) },
  {
    $id: 'SignUpAccepted',
    title: 'SignUpAccepted',
    description: 'The same whether or not the address has an account.',
  },
);
export const Accepted = resource(
  'acknowledgement',
  { status: enumOf(['accepted']) },
  {
    $id: 'Accepted',
    title: 'Accepted',
    description: 'The request was accepted; an email follows where one applies.',
  },
);
export const VerifyEmail = strictObject(
  {
    token,
    password: Type.Optional(
      password('The password of the sign-up. Not needed in the browser that signed up, which has a cookie.'),
    ),
  },
  { $id: 'VerifyEmail', title: 'VerifyEmail' },
);
export const SignIn = strictObject(
  { email, password: password('Password of the account.') },
  { $id: 'SignIn', title: 'SignIn' },
);

const SESSION_FIELDS = {
  token: text(64, {
    description: 'Session token (sst_…): send it as Authorization: Bearer. Returned only once.',
  }),
  expires_at: timestamp(),
  enrollment_only: Type.Boolean({
    description: 'An organization requires a second factor: the session can only enroll one.',
  }),
  user: ref(UserRecord),
};
export const SessionCreated = resource('session_token', SESSION_FIELDS, {
  $id: 'SessionCreated',
  title: 'SessionCreated',
});
export const MfaRequired = resource(
  'mfa_challenge',
  {
    mfa_required: Type.Literal(true),
    mfa_token: text(64, { description: 'For POST /auth/mfa/challenge; valid for ten minutes.' }),
    methods: Type.Array(enumOf(['totp', 'webauthn', 'recovery_code']), { maxItems: 3 }),
  },
  { $id: 'MfaRequired', title: 'MfaRequired' },
);
export const SignInResponse = Type.Unsafe<Static<typeof SessionCreated> | Static<typeof MfaRequired>>({
  anyOf: [ref(SessionCreated), ref(MfaRequired)],
  description: 'A session, or the request for the second factor.',
});
export const VerifiedSignUp = resource(
  'verified_sign_up',
  {
    ...SESSION_FIELDS,
    organization: resource('organization', { id: id('Id of the new organization (org_…).') }),
    api_key: text(64, { description: 'The organization’s first API key (ask_…). Returned only once.' }),
  },
  { $id: 'VerifiedSignUp', title: 'VerifiedSignUp' },
);
export const ForgotPassword = strictObject({ email }, { $id: 'ForgotPassword', title: 'ForgotPassword' });
export const ResetPassword = strictObject(
  { token, password: password('The new password, at least 12 characters.') },
  { $id: 'ResetPassword', title: 'ResetPassword' },
);
export const ChangePassword = strictObject(
  {
    current_password: Type.Optional(password('Required if the account has a password.')),
    new_password: password('At least 12 characters.'),
  },
  { $id: 'ChangePassword', title: 'ChangePassword' },
);
export const ChangeEmail = strictObject(
  { current_password: Type.Optional(password('Required if the account has a password.')), new_email: email },
  { $id: 'ChangeEmail', title: 'ChangeEmail' },
);
export const MailedToken = strictObject({ token }, { $id: 'MailedToken', title: 'MailedToken' });
export const UpdateUser = strictObject(
  {
    name: Type.Optional(nullableText(200, { description: 'At most 50 characters; null clears it.' })),
    avatar_url: Type.Optional(
      Type.Unsafe<string | null>({
        type: ['string', 'null'],
        maxLength: 2_048,
        pattern: '^https://',
        description: 'HTTPS URL of a picture; null clears it.',
      }),
    ),
  },
  { $id: 'UpdateUser', title: 'UpdateUser' },
);

/** Names each field: a sign-in is one of several responses, and one with a field of its own matches none of them. */
export function presentMembership({
  organizationId,
  name,
  slug,
  role,
  deletedAt,
}: Membership): Static<typeof MembershipRecord> {
  return {
    object: 'membership',
    id: organizationId,
    name,
    slug,
    role,
    deleted_at: deletedAt?.toISOString() ?? null,
  };
}

export function presentUser(account: Account): Static<typeof UserRecord> {
  return {
    object: 'user',
    id: account.id,
    email: account.email,
    email_verified: account.isEmailVerified,
    name: account.name,
    avatar_url: account.avatarUrl,
    mfa_enabled: account.isMfaEnabled,
    organizations: account.organizations.map(presentMembership),
    created_at: account.createdAt.toISOString(),
    deleted_at: account.deletedAt?.toISOString() ?? null,
  };
}

export function presentSignIn(
  result: SignInResult,
  account: Account,
): Static<typeof SessionCreated> | Static<typeof MfaRequired> {
  if (result.kind === 'mfa_required')
    return {
      object: 'mfa_challenge',
      mfa_required: true,
      mfa_token: result.mfaToken,
      methods: result.methods,
    };
  return {
    object: 'session_token',
    token: result.session.token,
    expires_at: result.session.expiresAt.toISOString(),
    enrollment_only: result.isEnrollmentOnly,
    user: presentUser(account),
  };
}
