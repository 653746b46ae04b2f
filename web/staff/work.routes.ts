import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { buildUrlOf } from '../../api/admin/run-url.ts';
import { type Lists, pageQuery } from '../../api/lists.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { RunFilter } from '../../domain/workflow-runs/list-runs.ts';
import type { RunAction } from '../../domain/workflow-runs/plan-action.ts';
import type { StaffJobRequest, StaffJobService } from '../../domain/workflow-runs/staff-job.service.ts';
import type { ListedRun, WorkflowRunService } from '../../domain/workflow-runs/workflow-run.service.ts';
import type { Config } from '../../platform/config.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { RUN_STATUSES } from '../../platform/temporal-runs/workflow-run.ts';
import type { AmbiguityResolution } from '../../workflows/outbound/send-message.contract.ts';
import { OptionalText } from '../shell/forms.ts';
import { type Console, NoticeQuery, ResourceParams } from './console.ts';
import { filled, nextPage } from './filters.ts';
import { MAX_LIST_CHARACTERS, readResolutionList } from './resolution-list.ts';

export interface WorkConsoleDependencies {
  console: Console;
  workflowRuns: WorkflowRunService;
  staffJobs: StaffJobService;
  lists: Lists;
  config: Pick<Config, 'TEMPORAL_UI_URL' | 'TEMPORAL_NAMESPACE'>;
}

const RunFilterForm = {
  status: Type.Optional(enumOf(RUN_STATUSES)),
  type: OptionalText(64),
  stage: OptionalText(64),
  organization_id: OptionalText(64),
  about: OptionalText(320),
  older_than_minutes: Type.Optional(Type.Unsafe<string>({ type: 'string', maxLength: 7, pattern: '^\\d*$' })),
  failing: Type.Optional(enumOf(['on', ''])),
};
const RunFilterFields = strictObject(RunFilterForm);
type RunFilterFields = Static<typeof RunFilterFields>;
const resolution = Type.Optional(enumOf(['', 'sent', 'resend']));
const recipient = Type.Optional(Type.Unsafe<string>({ type: 'string', maxLength: 4, pattern: '^\\d*$' }));
const LATEST_JOBS = { limit: 25, order: 'desc' } as const;

/** Work that runs, waits or is stuck, and what staff can do with it. */
export const workConsole =
  (dependencies: WorkConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { console, workflowRuns, staffJobs, lists } = dependencies;
    const urlOf = buildUrlOf(dependencies);

    const showWork = async (
      request: FastifyRequest,
      reply: FastifyReply,
      shown: {
        form: RunFilterFields;
        runs: ListedRun[];
        nextPage?: string | undefined;
        list?: string;
        problem?: AppError;
      },
    ) => {
      const { form, runs, problem, ...data } = shown;
      const { status, type, stage, organization_id, about, older_than_minutes, failing } = form;
      return console.send(request, reply, {
        template: 'staff/work',
        title: 'Work',
        problem,
        data: {
          ...data,
          filter: filled({ status, type, stage, organization_id, about, older_than_minutes, failing }),
          statuses: RUN_STATUSES,
          runs: runs.map((run) => ({ ...run, path: runPath(run.workflowId) })),
          jobs: (await staffJobs.list(request.staff, LATEST_JOBS)).items,
        },
      });
    };

    /** Starts an action on many runs and shows its progress, or the list again with the rejection. */
    const startJob = async (
      request: FastifyRequest,
      reply: FastifyReply,
      { read, form, list = '' }: { read: () => StaffJobRequest; form: RunFilterFields; list?: string },
    ) => {
      try {
        const job = await staffJobs.create(request.staff, read());
        return await reply.redirect(`/admin/work/jobs/${job.id}?notice=done`, 303);
      } catch (error) {
        if (!(error instanceof AppError) || error.status >= 500) throw error;
        const { items } = await workflowRuns.list(toRunFilter(form), { limit: LATEST_JOBS.limit });
        return showWork(request, reply, { form, runs: items, list, problem: error });
      }
    };

    app.get(
      '/admin/work',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.work',
          querystring: strictObject({
            limit: pageQuery.limit,
            cursor: pageQuery.cursor,
            ...NoticeQuery.properties,
            ...RunFilterForm,
          }),
        },
      },
      async (request, reply) => {
        const page = await workflowRuns.list(toRunFilter(request.query), lists.read(request));
        const next = nextPage(
          request,
          lists.present(request, page, () => null),
        );
        return showWork(request, reply, { form: request.query, runs: page.items, nextPage: next });
      },
    );

    const showRun = async (
      request: FastifyRequest,
      reply: FastifyReply,
      { workflowId, problem }: { workflowId: string; problem?: AppError },
    ) => {
      const run = await workflowRuns.get(workflowId);
      return console.send(request, reply, {
        template: 'staff/run',
        title: run.type,
        problem,
        log: { resourceId: workflowId },
        data: { run, temporalUiUrl: urlOf(run) },
      });
    };

    app.get(
      '/admin/work/run',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'console.run',
          querystring: strictObject({ ...NoticeQuery.properties, workflow_id: text(320, { minLength: 1 }) }),
        },
      },
      async (request, reply) => showRun(request, reply, { workflowId: request.query.workflow_id }),
    );

    for (const [action, staff] of [
      ['retry', 'support'],
      ['cancel', 'support'],
      ['resolve', 'support'],
      ['terminate', 'admin'],
    ] as const satisfies [RunAction, 'support' | 'admin'][])
      app.post(
        `/admin/work/${action}`,
        {
          config: { staff },
          schema: {
            operationId: `console.${action}Run`,
            body: strictObject({
              workflow_id: text(320, { minLength: 1 }),
              note: Note,
              resolution,
              recipient,
            }),
          },
        },
        async (request, reply) => {
          const { workflow_id: workflowId, note, resolution: decided, recipient: number } = request.body;
          return console.finish(reply, {
            work: workflowRuns.act(request.staff, workflowId, {
              action,
              note,
              decidedAt: new Date(),
              ...(decided ? { resolution: decided } : {}),
              ...(number ? { recipient: Number(number) } : {}),
            }),
            back: runPath(workflowId),
            show: (problem) => showRun(request, reply, { workflowId, problem }),
          });
        },
      );

    app.post(
      '/admin/work/bulk',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.bulk',
          body: strictObject({
            ...RunFilterForm,
            action: enumOf(['retry', 'cancel', 'terminate', 'resolve']),
            resolution,
            note: Note,
          }),
        },
      },
      async (request, reply) => {
        const { action, note, resolution: decided, ...form } = request.body;
        const read = () => ({
          action,
          note,
          resolution: action === 'resolve' ? readResolution(decided) : null,
          items: null,
          filter: toJobFilter(toRunFilter(form)),
        });
        return startJob(request, reply, { read, form });
      },
    );

    app.post(
      '/admin/work/resolve-list',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'console.resolveList',
          body: strictObject({ list: text(MAX_LIST_CHARACTERS, { minLength: 1 }), note: Note }),
        },
      },
      async (request, reply) => {
        const { list, note } = request.body;
        const read = (): StaffJobRequest => ({
          action: 'resolve',
          note,
          resolution: null,
          items: readResolutionList(list),
          filter: null,
        });
        return startJob(request, reply, { read, form: {}, list });
      },
    );

    app.get(
      '/admin/work/jobs/:id',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.job', params: ResourceParams, querystring: NoticeQuery },
      },
      async (request, reply) => {
        const job = await staffJobs.get(request.staff, request.params.id);
        return console.send(request, reply, {
          template: 'staff/job',
          title: 'Action on many runs',
          log: { resourceId: job.id },
          data: { job },
        });
      },
    );
    done();
  };

const runPath = (workflowId: string): string =>
  `/admin/work/run?${new URLSearchParams({ workflow_id: workflowId })}`;

/** An empty field of the form filters nothing. */
function toRunFilter(form: RunFilterFields): RunFilter {
  const minutes = form.older_than_minutes || undefined;
  return {
    status: form.status ?? 'running',
    failing: form.failing === 'on',
    type: form.type || undefined,
    stage: form.stage || undefined,
    organizationId: form.organization_id || undefined,
    about: form.about || undefined,
    startedBefore: minutes === undefined ? undefined : new Date(Date.now() - Number(minutes) * 60_000),
  };
}

/** A decision must not be assumed: "sent" would lose what the relay does not have. */
function readResolution(decided: '' | AmbiguityResolution | undefined): AmbiguityResolution {
  if (decided) return decided;
  throw invalid(
    '/body/resolution',
    'Resolving needs a decision.',
    'Choose whether the relay has the messages.',
  );
}

function toJobFilter({ status, failing, type, stage, organizationId, about, startedBefore }: RunFilter) {
  return {
    status,
    failing,
    ...filled({ type, stage, organizationId, about, startedBefore: startedBefore?.toISOString() }),
  };
}
