import { type Static, Type } from 'typebox';
import {
  MAX_LISTED,
  type OrganizationDetails,
} from '../../domain/administration/organization-details.service.ts';
import {
  DIRECTORY_STATUSES,
  type DirectoryEntry,
} from '../../domain/administration/organization-directory.service.ts';
import type {
  BulkResult,
  SuspensionTargetState,
} from '../../domain/administration/suspension-administration.service.ts';
import { TIERS } from '../../domain/organizations/tier.ts';
import {
  SUSPENSION_REASONS,
  SUSPENSION_TARGETS,
  type Suspension,
} from '../../domain/suspensions/suspension.entity.ts';
import { LIMITED_RESOURCES } from '../../domain/usage/counters.ts';
import type { LimitOverride } from '../../domain/usage/limit.entity.ts';
import { LIMIT_KINDS } from '../../domain/usage/tiers.ts';
import { pageQuery } from '../lists.ts';
import { PoliciesRecord, presentPolicies } from '../organizations/policies.routes.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  orNull,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';
import { LimitsRecord, presentLimits, presentUsage, UsageRecord } from '../usage/usage.schemas.ts';
import { LeaveWithoutBreakGlass, MAX_NOTE_LENGTH, Note } from './note.ts';

export const AdminNote = strictObject({ note: Note }, { $id: 'AdminNote', title: 'AdminNote' });

const reason = enumOf(SUSPENSION_REASONS, {
  description: 'A reinstatement lifts only the suspension for its reason.',
});

export const SuspensionRequest = strictObject(
  { reason, note: Note },
  { $id: 'SuspensionRequest', title: 'SuspensionRequest' },
);

export const MAX_BULK_ITEMS = 100;
export const BulkSuspensionRequest = strictObject(
  {
    items: Type.Array(
      strictObject({
        type: enumOf(SUSPENSION_TARGETS),
        id: id('Id of the organization, environment or inbox.'),
      }),
      {
        minItems: 1,
        maxItems: MAX_BULK_ITEMS,
      },
    ),
    reason,
    note: Note,
  },
  { $id: 'BulkSuspensionRequest', title: 'BulkSuspensionRequest' },
);

export const BulkSuspensionResults = resource(
  'bulk_suspension',
  {
    results: Type.Array(
      strictObject({
        type: enumOf(SUSPENSION_TARGETS),
        id: text(128),
        status: enumOf(['done', 'failed']),
        error: Type.Optional(
          strictObject(
            { code: text(64), detail: text(4_096) },
            { description: 'Why nothing changed for the item.' },
          ),
        ),
      }),
      { maxItems: MAX_BULK_ITEMS },
    ),
  },
  { $id: 'BulkSuspensionResults', title: 'BulkSuspensionResults' },
);

const actor = strictObject({ kind: enumOf(['staff', 'system']), id: text(128) });

export const SuspensionRecord = resource(
  'suspension',
  {
    id: id('Id of the suspension (sus_…).'),
    target: strictObject({ type: enumOf(SUSPENSION_TARGETS), id: text(128) }),
    reason: enumOf(SUSPENSION_REASONS),
    note: text(MAX_NOTE_LENGTH),
    created_by: actor,
    created_at: timestamp(),
    lifted_at: nullableTimestamp('Null while it is in force.'),
    lifted_by: Type.Union([actor, Type.Null()]),
    lifted_note: nullableText(MAX_NOTE_LENGTH),
  },
  { $id: 'Suspension', title: 'Suspension' },
);

export const SuspendableRecord = resource(
  'suspension_target',
  {
    type: enumOf(SUSPENSION_TARGETS),
    id: text(128),
    org_id: text(128),
    name: text(320, { description: 'Name of the organization or environment, address of the inbox.' }),
    status: enumOf(['active', 'suspended']),
    suspensions: Type.Array(ref(SuspensionRecord), {
      maxItems: SUSPENSION_REASONS.length,
      description: 'Those in force.',
    }),
  },
  { $id: 'SuspendedResourceType', title: 'SuspendedResourceType' },
);

const organizationFields = {
  id: id('Organization id (org_…).'),
  name: text(255),
  slug: text(255),
  status: enumOf(DIRECTORY_STATUSES, {
    description: 'closed: deleted by its owner, recoverable for 30 days.',
  }),
  tier: enumOf(TIERS),
  suspended_for: Type.Array(enumOf(SUSPENSION_REASONS), {
    maxItems: SUSPENSION_REASONS.length,
    description: 'Why the organization itself is suspended.',
  }),
  created_at: timestamp(),
  updated_at: timestamp(),
  deleted_at: nullableTimestamp('When it was closed.'),
};

export const AdminOrganizationRecord = resource('organization', organizationFields, {
  $id: 'AdminOrganization',
  title: 'AdminOrganization',
});

const count = Type.Integer({ minimum: 0 });

export const AdminOrganizationDetail = resource(
  'organization',
  {
    ...organizationFields,
    counts: strictObject({
      members: count,
      environments: count,
      inboxes: count,
      domains: count,
      api_keys: count,
      open_suspensions: Type.Integer({
        minimum: 0,
        description: 'In force, also for environments and inboxes: GET …/suspensions.',
      }),
    }),
    owners: Type.Array(
      strictObject({
        user_id: text(128),
        email: text(320),
        name: nullableText(320),
        status: enumOf(['active', 'suspended', 'deleted']),
      }),
      { maxItems: MAX_LISTED },
    ),
    environments: Type.Array(
      resource('environment', {
        id: text(128),
        name: text(255),
        slug: text(255),
        kind: enumOf(['production', 'sandbox']),
        status: enumOf(['active', 'suspended']),
      }),
      { maxItems: MAX_LISTED },
    ),
    policies: ref(PoliciesRecord),
    usage: ref(UsageRecord),
    limits: ref(LimitsRecord),
  },
  { $id: 'AdminOrganizationDetail', title: 'AdminOrganizationDetail' },
);

export const TopOrganizations = strictObject(
  {
    data: Type.Array(
      resource('ranked_organization', { organization: ref(AdminOrganizationRecord), value: count }),
      {
        maxItems: 100,
      },
    ),
  },
  { $id: 'TopOrganizations', title: 'TopOrganizations' },
);

const dateTime = (description: string) => Type.String({ format: 'date-time', maxLength: 40, description });

export const DirectoryQuery = strictObject({
  ...pageQuery,
  status: Type.Optional(enumOf(DIRECTORY_STATUSES, { description: 'Only organizations with this status.' })),
  tier: Type.Optional(enumOf(TIERS, { description: 'Only organizations of this tier.' })),
  created_after: Type.Optional(dateTime('Created at or after this time.')),
  created_before: Type.Optional(dateTime('Created before this time.')),
});

export const ChangeTier = strictObject(
  { tier: enumOf(TIERS), note: Note },
  { $id: 'ChangeTier', title: 'ChangeTier' },
);

export const ReassignOwner = strictObject(
  {
    user_id: id('The member who becomes the only owner (usr_…).'),
    note: Note,
    leave_without_break_glass: LeaveWithoutBreakGlass,
  },
  { $id: 'ReassignOwner', title: 'ReassignOwner' },
);

const nullableLimit = Type.Unsafe<number | null>({
  type: ['integer', 'null'],
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'Null: unlimited.',
});

export const SetLimitOverride = strictObject(
  {
    counter: enumOf(LIMITED_RESOURCES),
    limit: nullableLimit,
    kind: Type.Optional(
      orNull(enumOf(LIMIT_KINDS, { description: 'Default: the kind of the organization’s tier.' })),
    ),
    expires_at: Type.Optional(
      orNull(dateTime('When the limit of the tier applies again. Default: when the override is removed.')),
    ),
    note: Note,
  },
  { $id: 'SetLimitOverride', title: 'SetLimitOverride' },
);

export const LimitOverrideRecord = resource(
  'limit_override',
  {
    counter: enumOf(LIMITED_RESOURCES),
    limit: nullableLimit,
    kind: enumOf(LIMIT_KINDS),
    expires_at: nullableTimestamp('Null: in force until it is removed.'),
    expired: Type.Boolean({ description: 'It has no effect any longer.' }),
    note: text(MAX_NOTE_LENGTH),
    created_by: text(320),
    created_at: timestamp(),
  },
  { $id: 'LimitOverride', title: 'LimitOverride' },
);

export const LimitOverrideList = strictObject(
  { data: Type.Array(ref(LimitOverrideRecord), { maxItems: LIMITED_RESOURCES.length }) },
  { $id: 'LimitOverrides', title: 'LimitOverrides' },
);

export function presentSuspension(suspension: Readonly<Suspension>): Static<typeof SuspensionRecord> {
  const { liftedAt, liftedByKind, liftedById } = suspension;
  return {
    object: 'suspension',
    id: suspension.id,
    target: { type: suspension.targetType, id: suspension.targetId },
    reason: suspension.reason,
    note: suspension.note,
    created_by: { kind: suspension.actorKind, id: suspension.actorId },
    created_at: suspension.createdAt.toISOString(),
    lifted_at: liftedAt?.toISOString() ?? null,
    lifted_by: liftedByKind === null || liftedById === null ? null : { kind: liftedByKind, id: liftedById },
    lifted_note: suspension.liftedNote,
  };
}

export function presentSuspendable(thing: SuspensionTargetState): Static<typeof SuspendableRecord> {
  const { type, id: targetId, organizationId, name, status, openSuspensions } = thing;
  return {
    object: 'suspension_target',
    type,
    id: targetId,
    org_id: organizationId,
    name,
    status,
    suspensions: openSuspensions.map(presentSuspension),
  };
}

export function presentBulkResults(results: BulkResult[]): Static<typeof BulkSuspensionResults> {
  return {
    object: 'bulk_suspension',
    results: results.map((result) => {
      const { type, id: itemId, status } = result;
      if (status === 'done') return { type, id: itemId, status };
      const { code, detail } = result.error;
      return { type, id: itemId, status, error: { code, detail } };
    }),
  };
}

export function presentDirectoryEntry(entry: DirectoryEntry): Static<typeof AdminOrganizationRecord> {
  return {
    object: 'organization',
    id: entry.id,
    name: entry.name,
    slug: entry.slug,
    status: entry.status,
    tier: entry.tier,
    suspended_for: entry.suspendedFor,
    created_at: entry.createdAt.toISOString(),
    updated_at: entry.updatedAt.toISOString(),
    deleted_at: entry.deletedAt?.toISOString() ?? null,
  };
}

export function presentDetails(details: OrganizationDetails): Static<typeof AdminOrganizationDetail> {
  const { counts, owners, environments } = details;
  return {
    ...presentDirectoryEntry(details),
    counts: {
      members: counts.members,
      environments: counts.environments,
      inboxes: counts.inboxes,
      domains: counts.domains,
      api_keys: counts.apiKeys,
      open_suspensions: counts.openSuspensions,
    },
    owners: owners.map(({ userId, email, name, status }) => ({ user_id: userId, email, name, status })),
    environments: environments.map((environment) => ({ object: 'environment', ...environment })),
    policies: presentPolicies(details.policies),
    usage: presentUsage(details.usage),
    limits: presentLimits(details.limits),
  };
}

export function presentOverride(
  override: Readonly<LimitOverride>,
  now = new Date(),
): Static<typeof LimitOverrideRecord> {
  const { resource, amount, kind, expiresAt, reason: why, createdBy, createdAt } = override;
  return {
    object: 'limit_override',
    counter: resource,
    limit: amount,
    kind,
    expires_at: expiresAt?.toISOString() ?? null,
    expired: expiresAt !== null && expiresAt <= now,
    note: why,
    created_by: createdBy,
    created_at: createdAt.toISOString(),
  };
}
