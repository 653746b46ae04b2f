import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { Static } from 'typebox';
import { TIERS } from '../../domain/organizations/tier.ts';
import {
  UPGRADE_REQUEST_STATUSES,
  type UpgradeRequest,
} from '../../domain/upgrade-requests/upgrade-request.entity.ts';
import type { UpgradeRequestService } from '../../domain/upgrade-requests/upgrade-request.service.ts';
import { MAX_NOTE_LENGTH as MAX_STAFF_NOTE_LENGTH } from '../admin/note.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import {
  enumOf,
  id,
  nullableText,
  nullableTimestamp,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
  timestamp,
} from '../schemas.ts';

const MAX_NOTE_LENGTH = 1_000;

export const CreateUpgradeRequest = strictObject(
  {
    tier: enumOf(TIERS),
    note: text(MAX_NOTE_LENGTH, {
      minLength: 1,
      pattern: '\\S',
      description: 'Why, for the administrators of the service.',
    }),
  },
  { $id: 'CreateUpgradeRequest', title: 'CreateUpgradeRequest' },
);

export const UpgradeRequestRecord = resource(
  'upgrade_request',
  {
    id: id('Id of the request (upg_…).'),
    org_id: text(128),
    tier: enumOf(TIERS, { description: 'The requested tier.' }),
    current_tier: enumOf(TIERS, { description: 'The tier when it was requested.' }),
    note: text(MAX_NOTE_LENGTH),
    status: enumOf(UPGRADE_REQUEST_STATUSES),
    requested_by: strictObject({ kind: enumOf(['user', 'api_key']), id: text(128) }),
    created_at: timestamp(),
    decided_at: nullableTimestamp('Null while it is open.'),
    decision_note: nullableText(MAX_STAFF_NOTE_LENGTH, { description: 'What the administrator wrote.' }),
  },
  { $id: 'UpgradeRequest', title: 'UpgradeRequest' },
);

export const upgradeRequestRoutes =
  ({
    upgradeRequests,
    lists,
  }: {
    upgradeRequests: UpgradeRequestService;
    lists: Lists;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/org/upgrade-requests',
      {
        config: {
          permission: 'billing:manage',
          readPermission: 'billing:manage',
          // An organization that has used its calls up asks for more.
          exemptFromUsageLimit: true,
        },
        schema: {
          operationId: 'upgradeRequests.create',
          summary: 'Ask the administrators of the service for another tier',
          description:
            'An organization has at most one open request. The owners get an email with the decision.',
          tags: ['Organization'],
          body: ref(CreateUpgradeRequest),
          response: { 201: ref(UpgradeRequestRecord), ...postProblems() },
        },
      },
      async ({ scope, body }, reply) =>
        reply.code(201).send(presentUpgradeRequest(await upgradeRequests.create(scope, body))),
    );

    app.get(
      '/org/upgrade-requests',
      {
        config: { permission: 'billing:manage', exemptFromUsageLimit: true },
        schema: {
          operationId: 'upgradeRequests.list',
          summary: 'List the organization’s requests for another tier',
          tags: ['Organization'],
          querystring: PageQuery,
          response: { 200: listOf(ref(UpgradeRequestRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await upgradeRequests.list(request.scope, lists.read(request));
        return lists.present(request, page, presentUpgradeRequest);
      },
    );
    done();
  };

export function presentUpgradeRequest(
  request: Readonly<UpgradeRequest>,
): Static<typeof UpgradeRequestRecord> {
  return {
    object: 'upgrade_request',
    id: request.id,
    org_id: request.organizationId,
    tier: request.tier,
    current_tier: request.currentTier,
    note: request.note,
    status: request.status,
    requested_by: { kind: request.requestedByKind, id: request.requestedById },
    created_at: request.createdAt.toISOString(),
    decided_at: request.decidedAt?.toISOString() ?? null,
    decision_note: request.decisionNote,
  };
}
