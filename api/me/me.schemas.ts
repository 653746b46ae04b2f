import { type Static, Type } from 'typebox';
import type { SendAllowance } from '../../domain/deliverability/send-allowance.service.ts';
import { PERMISSIONS } from '../../domain/identity/permissions.ts';
import type { Person } from '../../domain/identity/person.ts';
import type { Scope } from '../../domain/identity/scope.ts';
import { LIMIT_KINDS } from '../../domain/usage/tiers.ts';
import type { AppError } from '../../platform/errors.ts';
import type { RateLimit } from '../../platform/rate-limit/rate-limiter.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  resource,
  strictObject,
  timestamp,
} from '../schemas.ts';

const count = (description: string) => Type.Integer({ minimum: 0, description });
const nullableCount = (description: string) =>
  Type.Unsafe<number | null>({ type: ['integer', 'null'], minimum: 0, description });
const orNone = <Schema extends ReturnType<typeof strictObject>>(schema: Schema, description: string) =>
  Type.Unsafe<Static<Schema> | null>({ anyOf: [schema, { type: 'null' }], description });

const resetsAt = timestamp('When the count starts again (UTC); also without a limit.');

const RecipientCap = strictObject({
  limit: count('Recipients that the organization may send to in a day from the shared domain.'),
  remaining: count('Of these, the recipients that are left today.'),
});
const InboxCap = strictObject({
  limit: count('Messages that an inbox may send in a day (policy daily_send_cap_per_inbox).'),
  remaining: nullableCount(
    'Of these, the messages that are left today. Null: the credential has several inboxes.',
  ),
});
const Sends = strictObject({
  today: strictObject({
    remaining: nullableCount(
      'The least that the caps below leave, for messages with one recipient; null: no known cap.',
    ),
    shared_domain: orNone(
      RecipientCap,
      'Null: no cap, for example in a sandbox or with domains of your own.',
    ),
    per_inbox: orNone(InboxCap, 'Null: the organization sets no cap.'),
    resets_at: resetsAt,
  }),
  this_month: strictObject({
    limit: nullableCount('Messages of the organization in this month; null: unlimited.'),
    kind: enumOf(LIMIT_KINDS, { description: 'soft: only warns. hard: sends beyond the limit are refused.' }),
    remaining: nullableCount('Messages that are left before sends are refused; null: none are refused.'),
    resets_at: resetsAt,
  }),
});

export const CredentialRecord = resource(
  'credential',
  {
    kind: enumOf(['api_key', 'connection', 'session', 'impersonation']),
    id: id(
      'Id of the key (key_…), the connection (con_…), the session (ses_…) or the impersonation (imp_…).',
    ),
    user_id: nullableText(128, { description: 'The person of a session or connection; null for keys.' }),
    org_id: nullableText(128, {
      description:
        'Null for a session that has entered no organization: name one in the header x-org-id. Then no permissions hold.',
    }),
    permissions: Type.Array(enumOf(PERMISSIONS), { maxItems: PERMISSIONS.length }),
    binding: enumOf(['organization', 'environment', 'inbox'], {
      description: 'What the credential reaches: everything, one environment, or one inbox.',
    }),
    env_id: nullableText(128, {
      description: 'The environment in which this request works; null without an organization.',
    }),
    is_sandbox: Type.Boolean({ description: 'Whether that is a sandbox: nothing leaves the service.' }),
    inbox_id: nullableText(128, { description: 'The inbox that the credential is bound to; null: none.' }),
    suspended: nullableText(64, {
      description:
        'Null, or why the credential can read but not change anything: organization_suspended, environment_suspended, inbox_suspended.',
    }),
    expires_at: nullableTimestamp('Null: does not expire.'),
    rate_limit: strictObject({
      requests_per_second: count('Requests a second in the long run.'),
      burst: count('Requests at once.'),
    }),
    sends: orNone(Sends, 'What may still be sent. Null without an organization.'),
  },
  { $id: 'Credential', title: 'Credential' },
);

export interface Caller {
  scope?: Scope;
  /** The person of a session that has entered no organization. */
  person?: Person;
  suspension?: AppError | undefined;
  expiresAt: Date | null;
}

const NO_ORGANIZATION = {
  org_id: null,
  permissions: [],
  binding: 'organization' as const,
  env_id: null,
  is_sandbox: false,
  inbox_id: null,
  suspended: null,
  sends: null,
};

export function presentCredential(
  { scope, person, suspension, expiresAt }: Caller,
  limit: RateLimit,
  allowance: SendAllowance | undefined,
): Static<typeof CredentialRecord> {
  const common = {
    object: 'credential' as const,
    expires_at: expiresAt?.toISOString() ?? null,
    rate_limit: { requests_per_second: limit.perSecond, burst: limit.burst },
  };
  if (!scope || !allowance) {
    if (!person) throw new Error('The request has no credential');
    return {
      ...common,
      ...NO_ORGANIZATION,
      kind: 'session',
      id: person.sessionId,
      user_id: person.userId,
    };
  }
  return {
    ...common,
    ...identify(scope),
    org_id: scope.organizationId,
    permissions: [...scope.permissions],
    binding: scope.inboxId !== undefined ? 'inbox' : scope.environmentBound ? 'environment' : 'organization',
    env_id: scope.environmentId,
    is_sandbox: allowance.isSandbox,
    inbox_id: scope.inboxId ?? null,
    suspended: suspension?.code ?? null,
    sends: presentSends(allowance),
  };
}

function identify({ actor, member, connection, impersonation }: Scope) {
  if (impersonation) return { kind: 'impersonation' as const, id: impersonation.id, user_id: actor.id };
  if (member) return { kind: 'session' as const, id: member.person.sessionId, user_id: actor.id };
  if (connection) return { kind: 'connection' as const, id: actor.id, user_id: connection.userId };
  return { kind: 'api_key' as const, id: actor.id, user_id: null };
}

function presentSends({ today, month }: SendAllowance): Static<typeof Sends> {
  const known = [today.sharedDomain?.remaining, today.inbox?.remaining].filter(
    (remaining) => typeof remaining === 'number',
  );
  return {
    today: {
      remaining: known.length > 0 ? Math.min(...known) : null,
      shared_domain: today.sharedDomain,
      per_inbox: today.inbox,
      resets_at: today.resetsAt.toISOString(),
    },
    this_month: {
      limit: month.limit.limit,
      kind: month.limit.kind,
      remaining: month.remaining,
      resets_at: month.resetsAt.toISOString(),
    },
  };
}
