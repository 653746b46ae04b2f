import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { RetentionPolicyService } from '../../domain/retention/retention-policy.service.ts';
import { changeProblems, id, postProblems, problems, ref, strictObject } from '../schemas.ts';
import {
  PostponeRetention,
  presentRetention,
  RETENTION_POLICY_RESPONSE,
  RetentionPolicyRecord,
  SetRetentionPolicy,
} from './retention-policy.schemas.ts';

const OneOrganization = strictObject({ id: id('Id of the credential’s own organization (org_…).') });
const PATH = '/organizations/:id/retention-policy';

export const retentionPolicyRoutes =
  ({
    retentionPolicies,
    unversioned = false,
  }: {
    retentionPolicies: RetentionPolicyService;
    /** Registers the same operations without the /api/v1 prefix. */
    unversioned?: boolean;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const operation = (name: string, summary: string) => ({
      operationId: `${unversioned ? 'retentionUnversioned' : 'retention'}.${name}`,
      summary: unversioned ? `${summary} (same as /api/v1)` : summary,
      tags: ['Organization'],
      params: OneOrganization,
    });

    app.get(
      PATH,
      {
        config: { permission: 'inboxes:read' },
        schema: {
          ...operation('get', 'Get the retention policy'),
          response: { 200: ref(RetentionPolicyRecord), ...problems() },
        },
      },
      async (request) => presentRetention(await retentionPolicies.get(request.scope, request.params.id)),
    );

    app.put(
      PATH,
      {
        config: {
          permission: 'retention:manage',
          ...RETENTION_POLICY_RESPONSE,
          exemptFromUsageLimit: true,
        },
        schema: {
          ...operation('set', 'Set the retention policy'),
          description:
            'A longer period takes effect immediately. A shorter one takes effect after seven days; owners are emailed immediately, one day before, and monthly from then on. Setting the same value again changes nothing.',
          body: ref(SetRetentionPolicy),
          response: { 200: ref(RetentionPolicyRecord), ...changeProblems() },
        },
      },
      async (request) =>
        presentRetention(
          await retentionPolicies.set(request.scope, request.params.id, request.body.retention_days),
        ),
    );

    app.post(
      `${PATH}/postpone`,
      {
        config: {
          permission: 'retention:manage',
          ...RETENTION_POLICY_RESPONSE,
          exemptFromUsageLimit: true,
        },
        schema: {
          ...operation('postpone', 'Postpone the deletion of expired messages'),
          description: 'A running deletion stops within seconds. Never makes a deletion happen earlier.',
          body: ref(PostponeRetention),
          response: { 200: ref(RetentionPolicyRecord), ...postProblems() },
        },
      },
      async (request) =>
        presentRetention(
          await retentionPolicies.postpone(request.scope, request.params.id, request.body.days),
        ),
    );
    done();
  };
