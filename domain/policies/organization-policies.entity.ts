import { defineEntity, type InferEntity, p } from '@mikro-orm/core';
import { oneOf, timestamp, updatedAt } from '../../platform/database/columns.ts';
import { tenantPolicies } from '../../platform/database/policies.ts';
import { functionTrigger } from '../../platform/database/triggers.ts';
import { OrganizationEntity } from '../organizations/organization.entity.ts';

export const APPROVAL_MODES = ['off', 'all', 'external'] as const;
export type ApprovalMode = (typeof APPROVAL_MODES)[number];

/** `approval`: after an injection alarm, a person approves the risky sends of the inbox for a day. */
export const AFTER_ALARM = ['approval', 'none'] as const;
export type AfterAlarm = (typeof AFTER_ALARM)[number];

/** `ask`: staff need the consent of the organization before they see its mail. */
export const SUPPORT_ACCESS = ['allowed', 'ask'] as const;
export type SupportAccess = (typeof SUPPORT_ACCESS)[number];

/** The rules an organization sets for its members, keys and mail. An organization without a row has the defaults. */
export const OrganizationPoliciesEntity = defineEntity({
  name: 'OrganizationPolicies',
  tableName: 'organization_policies',
  policies: tenantPolicies({ lookup: true, people: true, staff: true }),
  checks: [
    {
      name: 'organization_policies_require_send_approval',
      expression: oneOf('require_send_approval', APPROVAL_MODES),
    },
    { name: 'organization_policies_after_alarm', expression: oneOf('after_alarm', AFTER_ALARM) },
    { name: 'organization_policies_support_access', expression: oneOf('support_access', SUPPORT_ACCESS) },
  ],
  triggers: [
    functionTrigger({
      name: 'signal_organization_policies_access_begin',
      table: 'organization_policies',
      event: 'insert',
      calls: 'signal_access',
    }),
    functionTrigger({
      name: 'signal_organization_policies_access',
      table: 'organization_policies',
      event: 'update',
      calls: 'signal_access',
    }),
  ],
  properties: {
    organizationId: () =>
      p.manyToOne(OrganizationEntity).mapToPk().fieldName('org_id').primary().deleteRule('cascade'),
    requireMfa: p.boolean().default(false),
    enforceSso: p.boolean().default(false),
    /**
     * Whether signing in by SSO satisfies `require_mfa`. The identity provider is then responsible for the second factor.
     */
    ssoSatisfiesMfa: p.boolean().default(true),
    /** Null: a session lasts as long as the service allows. */
    sessionMaxAgeHours: p.integer().strictNullable(),
    /** Ranges from which members and keys may call. Empty: every address. */
    allowedCidrs: p.array().default([]),
    /** Null: the limit of the service. */
    maxRecipientsPerMessage: p.integer().strictNullable(),
    /** Domains to which mail may be sent, including their subdomains. Empty: every domain. */
    allowedRecipientDomains: p.array().default([]),
    blockedRecipientDomains: p.array().default([]),
    /** Messages an inbox may send in a UTC day; null: no limit. */
    dailySendCapPerInbox: p.integer().strictNullable(),
    requireSendApproval: p.text().$type<ApprovalMode>().default('off'),
    afterAlarm: p.text().$type<AfterAlarm>().default('approval'),
    /** Whether mail that a key sends carries `Auto-Submitted: auto-generated` (RFC 3834 section 5). */
    autoSubmittedHeader: p.boolean().default(true),
    supportAccess: p.text().$type<SupportAccess>().default('allowed'),
    /** Under `ask`: staff may see the organization as its people do until this time; null: not now. */
    supportAccessUntil: timestamp().strictNullable(),
    updatedAt: updatedAt(),
  },
});

export type OrganizationPolicies = InferEntity<typeof OrganizationPoliciesEntity>;
