import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { Note } from '../../api/admin/note.ts';
import { buildUrlOf } from '../../api/admin/run-url.ts';
import { enumOf, strictObject, text } from '../../api/schemas.ts';
import type { RunFilter } from '../../domain/workflow-runs/list-runs.ts';
import type { RunAction } from '../../domain/workflow-runs/plan-action.ts';
import type { StaffJobService } from '../../domain/workflow-runs/staff-job.service.ts';
import type { WorkflowRunService } from '../../domain/workflow-runs/workflow-run.service.ts';
import type { Config } from '../../platform/config.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import { RUN_STATUSES } from '../../platform/temporal-runs/workflow-run.ts';
import type { AmbiguityResolution } from '../../workflows/outbound/send-message.contract.ts';
import { NumberField, OptionalText, readNumber } from '../shell/forms.ts';
import { withQuery } from '../shell/links.ts';
import type { Pages } from '../shell/pages.ts';
import { staffWords } from '../shell/words.ts';
import { type Console, NoticeQuery, ResourceParams, staffListQuery } from './console.ts';
import { filled } from './filters.ts';
import { MAX_LIST_CHARACTERS, readResolutionList } from './resolution-list.ts';

export interface WorkConsoleDependencies {
  console: Console;
  pages: Pages;
  workflowRuns: WorkflowRunService;
  staffJobs: StaffJobService;
  config: Pick<Config, 'TEMPORAL_UI_URL' | 'TEMPORAL_NAMESPACE'>;
}

const RunsQuery = staffListQuery({
  status: Type.Optional(enumOf(RUN_STATUSES)),
  type: OptionalText(64),
  stage: OptionalText(64),
  organization_id: OptionalText(64),
  about: OptionalText(320),
  older_than_minutes: Type.Optional(Type.Unsafe<string>({ type: 'string', maxLength: 7, pattern: '^\\d*$' })),
  failing: Type.Optional(enumOf(['on', ''])),
});
type RunFilters = Static<typeof RunsQuery>;
const RunQuery = strictObject({ ...NoticeQuery.properties, workflow_id: text(320, { minLength: 1 }) });
const resolution = Type.Optional(enumOf(['', 'sent', 'resend']));
const MAX_RECIPIENT = 9_999;
const LATEST_JOBS = { limit: 25, order: 'desc' } as const;

/** Work that runs, waits or is stuck, and what staff can do with it. */
export const workConsole =
  (dependencies: WorkConsoleDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const { console, pages, workflowRuns, staffJobs } = dependencies;
    const urlOf = buildUrlOf(dependencies);

    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const filters = request.query as RunFilters;
      const page = await workflowRuns.list(toRunFilter(filters), console.readPage(request));
      const { status, type, stage, organization_id, about, older_than_minutes, failing } = filters;
      const filter = filled({ status, type, stage, organization_id, about, older_than_minutes, failing });
      return console.send(request, reply, {
        template: 'staff/work',
        title: 'Work',
        problem,
        data: {
          filter,
          // The forms act on what the filter matches, and show it again.
          query: withQuery('', filter),
          statuses: RUN_STATUSES,
          runs: page.items.map((run) => ({ ...run, path: runPath(run.workflowId) })),
          jobs: (await staffJobs.list(request.staff, LATEST_JOBS)).items,
          nextPage: console.nextPage(request, page),
        },
      });
    };

    app.get(
      '/admin/work',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.work', querystring: RunsQuery },
      },
      async (request, reply) => show(request, reply),
    );

    const showRun = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { workflow_id: workflowId } = request.query as Static<typeof RunQuery>;
      const run = await workflowRuns.get(workflowId);
      return console.send(request, reply, {
        template: 'staff/run',
        title: run.type,
        problem,
        log: { resourceId: workflowId },
        data: { run, query: withQuery('', { workflow_id: workflowId }), temporalUiUrl: urlOf(run) },
      });
    };

    app.get(
      '/admin/work/run',
      { config: { staff: 'support' }, schema: { operationId: 'console.run', querystring: RunQuery } },
      async (request, reply) => showRun(request, reply),
    );

    for (const [action, staff] of [
      ['retry', 'support'],
      ['cancel', 'support'],
      ['resolve', 'support'],
      ['terminate', 'admin'],
    ] as const satisfies [RunAction, 'support' | 'admin'][])
      console.form(app, `/admin/work/run/${action}`, {
        config: { staff },
        schema: {
          operationId: `console.${action}Run`,
          querystring: RunQuery,
          body: strictObject({ note: Note, resolution, recipient: Type.Optional(NumberField) }),
        },
        work: async (request) => {
          const { note, resolution: decided, recipient = '' } = request.body;
          const { workflow_id: workflowId } = request.query as Static<typeof RunQuery>;
          const number = readNumber('recipient', recipient, { min: 0, max: MAX_RECIPIENT });
          return workflowRuns.act(request.staff, workflowId, {
            action,
            note,
            decidedAt: new Date(),
            ...(decided ? { resolution: decided } : {}),
            ...(number === null ? {} : { recipient: number }),
          });
        },
        show: showRun,
      });

    const showJob = (_request: FastifyRequest, reply: FastifyReply, { id }: { id: string }) =>
      pages.seeOther(reply, `/admin/work/jobs/${id}`, 'done');

    console.form(app, '/admin/work/bulk', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.bulk',
        querystring: RunsQuery,
        body: strictObject({
          action: enumOf(['retry', 'cancel', 'terminate', 'resolve']),
          resolution,
          note: Note,
        }),
      },
      work: async ({ staff, query, body: { action, note, resolution: decided } }) =>
        staffJobs.create(staff, {
          action,
          note,
          resolution: action === 'resolve' ? readResolution(decided) : null,
          items: null,
          filter: toJobFilter(toRunFilter(query as RunFilters)),
        }),
      show,
      done: showJob,
    });

    console.form(app, '/admin/work/resolve-list', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.resolveList',
        querystring: RunsQuery,
        body: strictObject({ list: text(MAX_LIST_CHARACTERS, { minLength: 1 }), note: Note }),
      },
      work: async ({ staff, body: { list, note } }) =>
        staffJobs.create(staff, {
          action: 'resolve',
          note,
          resolution: null,
          items: readResolutionList(list),
          filter: null,
        }),
      show,
      done: showJob,
    });

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
          data: {
            job,
            problems: job.problems.map(({ target, error }) => ({ target, error: staffWords(error) })),
          },
        });
      },
    );
    done();
  };

const runPath = (workflowId: string): string =>
  `/admin/work/run?${new URLSearchParams({ workflow_id: workflowId })}`;

/** An empty field of the form filters nothing. */
function toRunFilter(form: RunFilters): RunFilter {
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
