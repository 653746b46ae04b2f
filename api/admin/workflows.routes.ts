import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { StaffRole } from '../../domain/staff/staff-scope.ts';
import type { RunFilter } from '../../domain/workflow-runs/list-runs.ts';
import type { RunAction } from '../../domain/workflow-runs/plan-action.ts';
import type { WorkflowRunService } from '../../domain/workflow-runs/workflow-run.service.ts';
import type { Config } from '../../platform/config.ts';
import { type Lists, listOf, pageQuery } from '../lists.ts';
import { postProblems, problems, ref, strictObject } from '../schemas.ts';
import { AdminNote } from './organizations.schemas.ts';
import { buildUrlOf } from './run-url.ts';
import {
  AcceptedRunAction,
  presentRun,
  presentRunDetails,
  ResolveRunBody,
  runFilters,
  WorkflowId,
  WorkflowRunDetails,
  WorkflowRunRecord,
} from './workflows.schemas.ts';

export interface WorkflowRoutesOptions {
  workflowRuns: WorkflowRunService;
  lists: Lists;
  config: Pick<Config, 'TEMPORAL_UI_URL' | 'TEMPORAL_NAMESPACE'>;
}

const ACTIONS: readonly { action: RunAction; staff: StaffRole; summary: string }[] = [
  {
    action: 'retry',
    staff: 'support',
    summary: 'Retry the work of a run now; start a run that ended early again',
  },
  {
    action: 'cancel',
    staff: 'support',
    summary: 'Cancel the work of a run: what has not happened yet will not',
  },
  {
    action: 'terminate',
    staff: 'admin',
    summary: 'Terminate a run; the service settles its resource, or starts the run again, within minutes',
  },
  {
    action: 'resolve',
    staff: 'support',
    summary: 'Resolve a send for which it is unknown whether the relay accepted the message',
  },
];

const WorkflowParams = strictObject({ workflow_id: WorkflowId });
const { limit, cursor } = pageQuery;

/** Stuck and waiting work. A workflow id contains slashes: encode them in the path, or give the id in the query. */
export const workflowRoutes =
  (options: WorkflowRoutesOptions): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { workflowRuns, lists } = options;
    const urlOf = buildUrlOf(options);

    app.get(
      '/workflows',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'workflows.list',
          summary: 'List workflow runs: stuck and waiting work, newest first',
          description:
            'One request examines at most 500 runs. With `failing`, a page may therefore be short or empty although `has_more` is true: continue with the cursor.',
          tags: ['Admin'],
          querystring: strictObject({
            limit,
            cursor,
            ...runFilters,
            workflow_id: Type.Optional(WorkflowId),
          }),
          response: { 200: listOf(ref(WorkflowRunRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await workflowRuns.list(readFilter(request.query), lists.read(request));
        return lists.present(request, page, (run) => presentRun(run, urlOf));
      },
    );

    for (const { path, suffix, location } of LOCATIONS) {
      const read = (request: FastifyRequest) =>
        (request[location] as Static<typeof WorkflowParams>).workflow_id;
      const located = { [location === 'query' ? 'querystring' : 'params']: WorkflowParams };
      app.get(
        `/workflows${path}${suffix ? '/run' : ''}`,
        {
          config: { staff: 'support' },
          schema: {
            operationId: `workflows.get${suffix}`,
            summary: 'Get the latest run of a workflow id, with its newest events',
            tags: ['Admin'],
            ...located,
            response: { 200: ref(WorkflowRunDetails), ...problems() },
          },
        },
        async (request) => presentRunDetails(await workflowRuns.get(read(request)), urlOf),
      );
      for (const { action, staff, summary } of ACTIONS) {
        app.post(
          `/workflows${path}/${action}`,
          {
            config: { staff },
            schema: {
              operationId: `workflows.${action}${suffix}`,
              summary,
              tags: ['Admin'],
              ...located,
              body: action === 'resolve' ? ResolveRunBody : ref(AdminNote),
              response: { 202: ref(AcceptedRunAction), ...postProblems() },
            },
          },
          async (request, reply) => {
            const body = request.body as Static<typeof ResolveRunBody>;
            const accepted = await workflowRuns.act(request.staff, read(request), {
              action,
              decidedAt: new Date(),
              ...body,
            });
            reply.code(202);
            return {
              object: 'run_action' as const,
              workflow_id: accepted.workflowId,
              type: accepted.type,
              action: accepted.action,
              effect: accepted.effect,
            };
          },
        );
      }
    }
    done();
  };

/** Proxies that decode paths make the second form necessary. */
const LOCATIONS = [
  { path: '/:workflow_id', suffix: '', location: 'params' },
  { path: '', suffix: 'ByQuery', location: 'query' },
] as const;

export function readFilter(query: {
  status: RunFilter['status'];
  failing: boolean;
  type?: string;
  stage?: string;
  org_id?: string;
  about?: string;
  older_than_seconds?: number;
  workflow_id?: string;
}): RunFilter {
  const { older_than_seconds: ageSeconds } = query;
  return {
    status: query.status,
    failing: query.failing,
    type: query.type,
    stage: query.stage,
    organizationId: query.org_id,
    about: query.about,
    workflowId: query.workflow_id,
    startedBefore: ageSeconds === undefined ? undefined : new Date(Date.now() - ageSeconds * 1_000),
  };
}
