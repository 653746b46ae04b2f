import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import {
  type EndpointBacklog,
  MAX_COUNTED,
  MAX_ENDPOINTS,
} from '../../domain/administration/endpoint-backlog.ts';
import type { OrganizationOperationsService } from '../../domain/administration/organization-operations.service.ts';
import {
  PostponeRetention,
  presentRetention,
  RetentionPolicyRecord,
} from '../retention/retention-policy.schemas.ts';
import {
  id,
  nullableText,
  nullableTimestamp,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
  text,
} from '../schemas.ts';
import { parseTime } from '../time.ts';
import { BulkJobRecord, presentJob, ReplayEvents } from '../webhooks/deliveries.schemas.ts';
import { Note } from './note.ts';
import { AdminNote } from './organizations.schemas.ts';

const OneOrganization = strictObject({ id: id('Organization id (org_…).') });
const OneEndpoint = strictObject({
  id: id('Organization id (org_…).'),
  endpointId: id('Endpoint id (whe_…).'),
});
const counted = (description: string) => Type.Integer({ minimum: 0, maximum: MAX_COUNTED, description });

export const AdminWebhookEndpointList = strictObject(
  {
    data: Type.Array(
      resource('webhook_endpoint', {
        id: id('Endpoint id (whe_…).'),
        env_id: id('Environment.'),
        url: text(2_048),
        disabled: Type.Boolean(),
        disabled_reason: nullableText(2_000),
        failing_since: nullableTimestamp('Null while attempts succeed.'),
        consecutive_failures: Type.Integer({ minimum: 0 }),
        pending: counted('Deliveries that are attempted, or wait for their next attempt.'),
        held: counted('Deliveries that wait until the endpoint answers or is enabled, or a hold ends.'),
        oldest_at: nullableTimestamp('When the oldest of them was recorded.'),
        running_job_id: nullableText(128, {
          description: 'The job that replays or cancels its deliveries now.',
        }),
      }),
      { maxItems: MAX_ENDPOINTS },
    ),
  },
  {
    $id: 'AdminWebhookEndpointList',
    title: 'AdminWebhookEndpointList',
    description: 'At most 100 endpoints, those that fail or are disabled first.',
  },
);

export const StaffPostponeRetention = strictObject(
  { ...PostponeRetention.properties, note: Note },
  { $id: 'StaffPostponeRetention', title: 'StaffPostponeRetention' },
);
export const StaffReplayEvents = strictObject(
  { ...ReplayEvents.properties, note: Note },
  { $id: 'StaffReplayEvents', title: 'StaffReplayEvents' },
);

/** What staff do for one organization whose own people cannot: its retention, and the backlog of its endpoints. */
export const organizationOperationRoutes =
  ({
    organizationOperations: operations,
  }: {
    organizationOperations: OrganizationOperationsService;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const tags = ['Admin'];
    app.get(
      '/orgs/:id/retention-policy',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminOrganizations.getRetention',
          summary: 'Get the retention policy of an organization',
          tags,
          params: OneOrganization,
          response: { 200: ref(RetentionPolicyRecord), ...problems() },
        },
      },
      async ({ staff, params }) => presentRetention(await operations.getRetention(staff, params.id)),
    );

    app.post(
      '/orgs/:id/retention-policy/postpone',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminOrganizations.postponeRetention',
          summary: 'Postpone the deletion of expired messages of an organization',
          description: 'A running deletion stops within seconds. Never makes a deletion happen earlier.',
          tags,
          params: OneOrganization,
          body: ref(StaffPostponeRetention),
          response: { 200: ref(RetentionPolicyRecord), ...postProblems() },
        },
      },
      async ({ staff, params, body }) =>
        presentRetention(await operations.postponeRetention(staff, params.id, body)),
    );

    app.get(
      '/orgs/:id/webhook-endpoints',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'adminWebhookEndpoints.list',
          summary: 'List the webhook endpoints of an organization with their backlogs',
          tags,
          params: OneOrganization,
          response: { 200: ref(AdminWebhookEndpointList), ...problems() },
        },
      },
      async ({ staff, params }) => ({
        data: (await operations.listEndpoints(staff, params.id)).map(presentEndpoint),
      }),
    );

    app.post(
      '/orgs/:id/webhook-endpoints/:endpointId/replay',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminWebhookEndpoints.replay',
          summary: 'Replay the events of a time range to an endpoint',
          tags,
          params: OneEndpoint,
          body: ref(StaffReplayEvents),
          response: { 202: ref(BulkJobRecord), ...postProblems() },
        },
      },
      async ({ staff, params, body }, reply) => {
        const { since, until, event_types, only_failed, note } = body;
        const target = { organizationId: params.id, endpointId: params.endpointId };
        const job = await operations.replayEndpoint(staff, target, {
          since: parseTime('/body/since', since),
          until: until === undefined ? undefined : parseTime('/body/until', until),
          eventTypes: event_types,
          onlyFailed: only_failed,
          note,
        });
        reply.code(202);
        return presentJob(job);
      },
    );

    app.post(
      '/orgs/:id/webhook-endpoints/:endpointId/cancel-pending',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'adminWebhookEndpoints.cancelPending',
          summary: 'Drop the backlog of an endpoint: cancel all pending and held deliveries',
          tags,
          params: OneEndpoint,
          body: ref(AdminNote),
          response: { 202: ref(BulkJobRecord), ...postProblems() },
        },
      },
      async ({ staff, params, body }, reply) => {
        const target = { organizationId: params.id, endpointId: params.endpointId };
        const job = await operations.dropBacklog(staff, target, body);
        reply.code(202);
        return presentJob(job);
      },
    );
    done();
  };

function presentEndpoint(endpoint: EndpointBacklog): Static<typeof AdminWebhookEndpointList>['data'][number] {
  return {
    object: 'webhook_endpoint',
    id: endpoint.id,
    env_id: endpoint.environmentId,
    url: endpoint.url,
    disabled: endpoint.disabled,
    disabled_reason: endpoint.disabledReason,
    failing_since: endpoint.failingSince?.toISOString() ?? null,
    consecutive_failures: endpoint.consecutiveFailures,
    pending: endpoint.pending,
    held: endpoint.held,
    oldest_at: endpoint.oldestAt?.toISOString() ?? null,
    running_job_id: endpoint.runningJobId,
  };
}
