import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import { MAX_RECIPIENTS } from '../../domain/outbound/outbound-content.ts';
import {
  ACCESS_POLICIES,
  MAX_PREVIEWED_MEMBERS,
  type PolicyEffect,
  type PolicyPreviewService,
} from '../../domain/people/policy-preview.service.ts';
import type { Policies } from '../../domain/policies/find-policies.ts';
import {
  AFTER_ALARM,
  APPROVAL_MODES,
  SUPPORT_ACCESS,
} from '../../domain/policies/organization-policies.entity.ts';
import type { PolicyService } from '../../domain/policies/policy.service.ts';
import {
  changeProblems,
  enumOf,
  id,
  nullableTimestamp,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
} from '../schemas.ts';
import { parseTime } from '../time.ts';

const MAX_SESSION_HOURS = 720;
const MAX_DAILY_CAP = 10_000_000;
const allowedCidrs = Type.Array(text(64), {
  maxItems: 100,
  description: 'Addresses and CIDR ranges that members and keys may call from. Empty: from everywhere.',
});
const sessionMaxAgeHours = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 1,
  maximum: MAX_SESSION_HOURS,
  description: 'Sessions end this long after signing in. Null: after 30 days.',
});

const MAX_DOMAINS = 200;
const domains = (description: string) => Type.Array(text(253), { maxItems: MAX_DOMAINS, description });
const nullableInteger = (maximum: number, description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 1, maximum, description });

const fields = {
  require_mfa: Type.Boolean({ description: 'Members need a second factor.' }),
  enforce_sso: Type.Boolean({
    description:
      'Members sign in through the active SSO configuration. Only owners with a passkey, or with a password and a second factor, get in without it, and all owners are informed.',
  }),
  sso_satisfies_mfa: Type.Boolean({
    description:
      'Signing in through the SSO of this organization satisfies require_mfa: the identity provider asks for the second factor.',
  }),
  session_max_age_hours: sessionMaxAgeHours,
  allowed_cidrs: allowedCidrs,
  max_recipients_per_message: nullableInteger(
    MAX_RECIPIENTS,
    'Recipients of one message in to, cc and bcc. Null: the limit of the service.',
  ),
  allowed_recipient_domains: domains(
    'Domains that mail may be sent to, with their subdomains. Empty: every domain.',
  ),
  blocked_recipient_domains: domains(
    'Domains that mail may not be sent to, with their subdomains, even if they are allowed.',
  ),
  daily_send_cap_per_inbox: nullableInteger(
    MAX_DAILY_CAP,
    'Messages that an inbox may send in a UTC day, whatever their number of recipients. Null: no cap.',
  ),
  require_send_approval: enumOf(APPROVAL_MODES, {
    description:
      'Whether a person approves what keys and SMTP clients send: `external` if a recipient is outside the inboxes and verified domains of the organization.',
  }),
  after_alarm: enumOf(AFTER_ALARM, {
    description:
      'What follows a received message whose injection.level is `alarm`. `approval`: for 24 hours, or until a person dismisses it (POST /api/v1/messages/{id}/injection/dismiss), a person approves what keys and SMTP clients send from the inbox in its thread, to addresses in it, and to new addresses; and keys that reach the inbox cannot create or redirect webhook endpoints.',
  }),
  auto_submitted_header: Type.Boolean({
    description:
      'Mail that a key sends carries Auto-Submitted (RFC 3834): auto-replied for a reply, else auto-generated.',
  }),
  support_access: enumOf(SUPPORT_ACCESS, {
    description:
      'Whether staff of the service may see the organization as its people do (impersonation): `allowed`, with an email to the owners each time, or `ask`, only until `support_access_until`.',
  }),
  support_access_until: nullableTimestamp(
    'Under `ask`: the consent for staff ends then. Null: staff may not see the organization. Setting it to null ends their support sessions with their next request.',
  ),
};

export const PoliciesRecord = resource('policies', fields, { $id: 'Policies', title: 'Policies' });
export const UpdatePolicies = strictObject(
  {
    require_mfa: Type.Optional(fields.require_mfa),
    enforce_sso: Type.Optional(fields.enforce_sso),
    sso_satisfies_mfa: Type.Optional(fields.sso_satisfies_mfa),
    session_max_age_hours: Type.Optional(fields.session_max_age_hours),
    allowed_cidrs: Type.Optional(fields.allowed_cidrs),
    max_recipients_per_message: Type.Optional(fields.max_recipients_per_message),
    allowed_recipient_domains: Type.Optional(fields.allowed_recipient_domains),
    blocked_recipient_domains: Type.Optional(fields.blocked_recipient_domains),
    daily_send_cap_per_inbox: Type.Optional(fields.daily_send_cap_per_inbox),
    require_send_approval: Type.Optional(fields.require_send_approval),
    after_alarm: Type.Optional(fields.after_alarm),
    auto_submitted_header: Type.Optional(fields.auto_submitted_header),
    support_access: Type.Optional(fields.support_access),
    support_access_until: Type.Optional(fields.support_access_until),
  },
  { $id: 'UpdatePolicies', title: 'UpdatePolicies' },
);

export const PreviewPolicies = strictObject(
  {
    require_mfa: Type.Optional(fields.require_mfa),
    enforce_sso: Type.Optional(fields.enforce_sso),
    sso_satisfies_mfa: Type.Optional(fields.sso_satisfies_mfa),
    allowed_cidrs: Type.Optional(fields.allowed_cidrs),
  },
  { $id: 'PreviewPolicies', title: 'PreviewPolicies' },
);
export const PolicyPreviewRecord = resource(
  'policy_preview',
  {
    effects: Type.Array(
      strictObject({
        user_id: id('Id of the user (usr_…).'),
        email: text(254),
        role: enumOf(MEMBER_ROLES),
        policy: enumOf(ACCESS_POLICIES),
        locked_out: Type.Boolean({ description: 'The member cannot do anything about it.' }),
        effect: text(200, { description: 'One sentence about the member.' }),
      }),
      { maxItems: MAX_PREVIEWED_MEMBERS * ACCESS_POLICIES.length },
    ),
    complete: Type.Boolean({
      description: `False for more than ${MAX_PREVIEWED_MEMBERS} members: the others are not looked at.`,
    }),
  },
  { $id: 'PolicyPreview', title: 'PolicyPreview' },
);

export const policyRoutes =
  ({
    policies,
    policyPreviews,
  }: {
    policies: PolicyService;
    policyPreviews: PolicyPreviewService;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/org/policies',
      {
        config: { permission: 'policies:manage' },
        schema: {
          operationId: 'policies.get',
          summary: 'Get the policies of the organization',
          tags: ['Organization'],
          response: { 200: ref(PoliciesRecord), ...problems() },
        },
      },
      async ({ scope }) => presentPolicies(await policies.get(scope)),
    );

    app.patch(
      '/org/policies',
      {
        config: { permission: 'policies:manage', readPermission: 'policies:manage' },
        schema: {
          operationId: 'policies.update',
          summary: 'Change the policies of the organization',
          description:
            'Omitted policies stay. Takes effect with the next request of every session and key, and with the next message, also with those that wait to be sent. A policy that would lock the caller out is refused.',
          tags: ['Organization'],
          body: ref(UpdatePolicies),
          response: { 200: ref(PoliciesRecord), ...changeProblems() },
        },
      },
      async ({ scope, body }) => presentPolicies(await policies.update(scope, readChange(body))),
    );

    app.post(
      '/org/policies/preview',
      {
        config: { permission: 'policies:manage', readPermission: 'policies:manage' },
        schema: {
          operationId: 'policies.preview',
          summary: 'See who would not get in if policies were changed',
          description:
            'Changes nothing. Lists what require_mfa, enforce_sso and allowed_cidrs would mean for each member who does not satisfy them; omitted policies are taken as they are. Requires members:read, too.',
          tags: ['Organization'],
          body: ref(PreviewPolicies),
          response: { 200: ref(PolicyPreviewRecord), ...postProblems() },
        },
      },
      async ({ scope, body }) => {
        const { effects, isComplete } = await policyPreviews.preview(scope, readChange(body));
        return {
          object: 'policy_preview' as const,
          effects: effects.map(presentEffect),
          complete: isComplete,
        };
      },
    );
    done();
  };

function presentEffect({ userId, isLockedOut, ...effect }: PolicyEffect) {
  return { user_id: userId, locked_out: isLockedOut, ...effect };
}

function readChange(body: Static<typeof UpdatePolicies>): Partial<Policies> {
  const change = {
    requireMfa: body.require_mfa,
    enforceSso: body.enforce_sso,
    ssoSatisfiesMfa: body.sso_satisfies_mfa,
    sessionMaxAgeHours: body.session_max_age_hours,
    allowedCidrs: body.allowed_cidrs,
    maxRecipientsPerMessage: body.max_recipients_per_message,
    allowedRecipientDomains: body.allowed_recipient_domains,
    blockedRecipientDomains: body.blocked_recipient_domains,
    dailySendCapPerInbox: body.daily_send_cap_per_inbox,
    requireSendApproval: body.require_send_approval,
    afterAlarm: body.after_alarm,
    autoSubmittedHeader: body.auto_submitted_header,
    supportAccess: body.support_access,
    supportAccessUntil: toDate(body.support_access_until),
  };
  // An omitted policy stays as it is.
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined));
}

function toDate(text: string | null | undefined): Date | null | undefined {
  return typeof text === 'string' ? parseTime('/body/support_access_until', text) : text;
}

export function presentPolicies(policies: Policies): Static<typeof PoliciesRecord> {
  return {
    object: 'policies',
    require_mfa: policies.requireMfa,
    enforce_sso: policies.enforceSso,
    sso_satisfies_mfa: policies.ssoSatisfiesMfa,
    session_max_age_hours: policies.sessionMaxAgeHours,
    allowed_cidrs: policies.allowedCidrs,
    max_recipients_per_message: policies.maxRecipientsPerMessage,
    allowed_recipient_domains: policies.allowedRecipientDomains,
    blocked_recipient_domains: policies.blockedRecipientDomains,
    daily_send_cap_per_inbox: policies.dailySendCapPerInbox,
    require_send_approval: policies.requireSendApproval,
    after_alarm: policies.afterAlarm,
    auto_submitted_header: policies.autoSubmittedHeader,
    support_access: policies.supportAccess,
    support_access_until: policies.supportAccessUntil?.toISOString() ?? null,
  };
}
