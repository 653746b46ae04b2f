import { DRAFT_SEND_STATUSES } from '../../domain/drafts/draft.entity.ts';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import { KEY_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import { INVITATION_STATUSES } from '../../domain/invitations/invitation.entity.ts';
import { MESSAGE_STATUSES, SIGNALS } from '../../domain/messages/message.entity.ts';
import { TIERS } from '../../domain/organizations/tier.ts';
import { STAFF_ROLES } from '../../domain/staff/staff-scope.ts';
import { SUSPENSION_REASONS, SUSPENSION_TARGETS } from '../../domain/suspensions/suspension.entity.ts';
import { UPGRADE_REQUEST_STATUSES } from '../../domain/upgrade-requests/upgrade-request.entity.ts';
import { LIMITED_RESOURCES, USAGE_COUNTERS } from '../../domain/usage/counters.ts';
import { LIMIT_KINDS } from '../../domain/usage/tiers.ts';
import { LEDGER_KINDS } from '../../domain/usage/usage-ledger.ts';
import { DELIVERY_STATUSES } from '../../domain/webhooks/delivery.entity.ts';
import { RUN_ACTIONS } from '../../domain/workflow-runs/plan-action.ts';
import { RUN_STATUSES } from '../../platform/temporal-runs/workflow-run.ts';

/** Enumerations that occur in several places, by the name of their type in generated clients. */
const NAMED_ENUMERATIONS: Readonly<Record<string, readonly string[]>> = {
  AccountStatus: ['active', 'suspended', 'deleted'],
  AmbiguousResolution: ['sent', 'resend'],
  AuthenticatorRequirement: ['required', 'preferred', 'discouraged'],
  CheckStatus: ['pending', 'verified', 'failed'],
  DeliveryStatus: DELIVERY_STATUSES,
  Disposition: ['attachment', 'inline'],
  DraftSendStatus: DRAFT_SEND_STATUSES,
  EnvironmentKind: ['production', 'sandbox'],
  EventType: EVENT_TYPES,
  InvitationStatus: INVITATION_STATUSES,
  JobStatus: ['running', 'completed', 'stopped'],
  JoiningRole: ['admin', 'developer', 'viewer'],
  LimitedResource: LIMITED_RESOURCES,
  LimitKind: LIMIT_KINDS,
  LimitSource: ['tier', 'override', 'own'],
  MemberRole: MEMBER_ROLES,
  MessageDirection: ['inbound', 'outbound'],
  MessageStatus: MESSAGE_STATUSES,
  OrganizationStatus: ['active', 'suspended', 'closed'],
  Permission: KEY_PERMISSIONS,
  RecipientStatus: [
    'pending',
    'sent',
    'deferred',
    'delivered',
    'bounced',
    'complained',
    'suppressed',
    'rejected',
  ],
  RejectionReason: ['blocked_recipient', 'rate_limited', 'account_paused'],
  RunAction: RUN_ACTIONS,
  RunStatus: RUN_STATUSES,
  ServiceStatus: ['ok', 'unavailable'],
  Signal: SIGNALS,
  SortOrder: ['asc', 'desc'],
  StaffRole: STAFF_ROLES,
  SuspendableKind: SUSPENSION_TARGETS,
  SuspendableStatus: ['active', 'suspended'],
  SuspensionReason: SUSPENSION_REASONS,
  Tier: TIERS,
  UpgradeRequestStatus: UPGRADE_REQUEST_STATUSES,
  UsageCounter: USAGE_COUNTERS,
  UsageEventType: LEDGER_KINDS,
};
const NAME_BY_VALUES = new Map(
  Object.entries(NAMED_ENUMERATIONS).map(([name, values]) => [values.join(), name]),
);

export const namedEnumerations = () =>
  Object.fromEntries(
    Object.entries(NAMED_ENUMERATIONS).map(([name, values]) => [
      name,
      { type: 'string', title: name, enum: values },
    ]),
  );

/** Replaces the values of known enumerations by a reference to their type, in place. Descriptions and defaults stay. */
export function shareEnumerations(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if ('type' in value && value.type === 'string' && 'enum' in value && Array.isArray(value.enum)) {
    const name = NAME_BY_VALUES.get(value.enum.join());
    if (name !== undefined) {
      const { type: _type, enum: _values, ...rest } = value;
      for (const key of Object.keys(value)) delete (value as Record<string, unknown>)[key];
      Object.assign(value, { $ref: `#/components/schemas/${name}` }, rest);
    }
  }
  for (const member of Object.values(value)) shareEnumerations(member);
}

/** A parameter, or a reference to one. */
export interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  schema?: { default?: unknown };
}

/** Parameters of most operations, by the name of their definition. */
const NAMED_PARAMETERS: Readonly<Record<string, string>> = {
  'x-org-id': 'Organization',
  'x-env-id': 'Environment',
  'idempotency-key': 'IdempotencyKey',
  limit: 'Limit',
  cursor: 'Cursor',
  order: 'Order',
};

/** Defines each common parameter once. One that differs, such as a smaller `limit`, stays in its operation. */
export function shareParameters(
  parameters: readonly Parameter[],
  shared: Record<string, object>,
): Parameter[] {
  return parameters.map((parameter) => {
    const name = NAMED_PARAMETERS[parameter.name];
    if (name === undefined) return parameter;
    shared[name] ??= parameter;
    return JSON.stringify(shared[name]) === JSON.stringify(parameter)
      ? ({ $ref: `#/components/parameters/${name}` } as Parameter)
      : parameter;
  });
}
