import { DRAFT_SEND_STATUSES } from '../../domain/drafts/draft.entity.ts';
import { EVENT_TYPES } from '../../domain/events/event-types.ts';
import { KEY_PERMISSIONS } from '../../domain/identity/permissions.ts';
import { REQUESTER_PROBLEMS } from '../../domain/identity/requester.ts';
import { MEMBER_ROLES } from '../../domain/identity/roles.ts';
import { SENDING_PAUSERS } from '../../domain/inboxes/sending-pause.ts';
import { INVITATION_STATUSES } from '../../domain/invitations/invitation.entity.ts';
import { MESSAGE_STATUSES, SIGNALS } from '../../domain/messages/message.entity.ts';
import { TEXT_FORMATS } from '../../domain/mime/new-text.ts';
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
  DeliveryHold: [
    'endpoint_disabled',
    'endpoint_failing',
    'usage_limit',
    'suspension',
    'organization_deleted',
    'switched_off',
  ],
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
  MessageView: ['full', 'agent'],
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
  RequesterProblem: Object.keys(REQUESTER_PROBLEMS),
  RunAction: RUN_ACTIONS,
  RunStatus: RUN_STATUSES,
  ServiceStatus: ['ok', 'unavailable'],
  Signal: SIGNALS,
  SortOrder: ['asc', 'desc'],
  SendingPauser: SENDING_PAUSERS,
  StaffRole: STAFF_ROLES,
  TextFormat: TEXT_FORMATS,
  SuspendableKind: SUSPENSION_TARGETS,
  SuspendableStatus: ['active', 'suspended'],
  SuspensionReason: SUSPENSION_REASONS,
  Tier: TIERS,
  UpgradeRequestStatus: UPGRADE_REQUEST_STATUSES,
  UsageCounter: USAGE_COUNTERS,
  UsageEventType: LEDGER_KINDS,
};
export const NAME_BY_VALUES: ReadonlyMap<string, string> = new Map(
  Object.entries(NAMED_ENUMERATIONS).map(([name, values]) => [values.join(), name]),
);

/** What a request may hold; in an answer later versions add values, so that it has a type of its own: `AnyMessageStatus`. */
export const openName = (name: string): string => `Any${name}`;

/** Both types of each enumeration, as far as the document refers to them. */
export function namedEnumerations(document: object): Record<string, object> {
  const json = JSON.stringify(document);
  const isUsed = (name: string) => json.includes(`"#/components/schemas/${name}"`);
  return Object.fromEntries(
    Object.entries(NAMED_ENUMERATIONS)
      .flatMap(([name, values]): [string, object][] => [
        [name, { type: 'string', title: name, enum: values }],
        [openName(name), { type: 'string', title: openName(name), 'x-known-values': values }],
      ])
      .filter(([name]) => isUsed(name)),
  );
}

type Schema = Record<string, unknown>;

/** Replaces the values of known enumerations by a reference to their type, in place. Descriptions and defaults stay. */
export function shareEnumerations(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  if ('enum' in value && Array.isArray(value.enum)) shareEnumeration(value as Schema, value.enum);
  for (const member of Object.values(value)) shareEnumerations(member);
}

function shareEnumeration(schema: Schema, given: unknown[]): void {
  if (given.length === 1) {
    delete schema.enum;
    schema.const = given[0];
    return;
  }
  const values = given.filter((value) => value !== null);
  const name = NAME_BY_VALUES.get(values.join());
  if (name === undefined) return;
  const isNullable = [schema.type].flat().includes('null');
  const reference = { $ref: `#/components/schemas/${name}` };
  delete schema.type;
  delete schema.enum;
  Object.assign(schema, isNullable ? orNull(reference) : reference);
}

export const orNull = (schema: Schema): Schema => ({ anyOf: [schema, { type: 'null' }] });

/** A parameter, or a reference to one. */
export interface Parameter {
  $ref?: string;
  name: string;
  in: string;
  required?: boolean;
  schema?: { default?: unknown };
}

/** Parameters of most operations, by the name of their definition; that of a schema would make generators call one `Organization2`. */
const NAMED_PARAMETERS: Readonly<Record<string, string>> = {
  'x-org-id': 'OrganizationId',
  'x-env-id': 'EnvironmentId',
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
