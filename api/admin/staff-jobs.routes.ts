import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { Static } from 'typebox';
import type { StaffJobRequest, StaffJobService } from '../../domain/workflow-runs/staff-job.service.ts';
import { AppError } from '../../platform/errors.ts';
import { type Lists, listOf, PageQuery } from '../lists.ts';
import { id, postProblems, problems, ref, strictObject } from '../schemas.ts';
import { readFilter } from './workflows.routes.ts';
import { presentStaffJob, StaffJobBody, StaffJobRecord } from './workflows.schemas.ts';

/** Actions on many runs, and their progress. */
export const staffJobRoutes =
  ({ staffJobs, lists }: { staffJobs: StaffJobService; lists: Lists }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.post(
      '/workflows/bulk',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'workflows.bulk',
          summary: 'Act on every run that matches a query, or resolve sends by a list from the relay’s log',
          tags: ['Admin'],
          body: StaffJobBody,
          response: { 202: ref(StaffJobRecord), ...postProblems() },
        },
      },
      async (request, reply) => {
        const job = await staffJobs.create(request.staff, readJob(request.body));
        reply.code(202);
        return presentStaffJob(job);
      },
    );

    app.get(
      '/workflows/jobs',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'workflows.listJobs',
          summary: 'List actions on many runs',
          tags: ['Admin'],
          querystring: PageQuery,
          response: { 200: listOf(ref(StaffJobRecord)), ...problems() },
        },
      },
      async (request) => {
        const page = await staffJobs.list(request.staff, lists.read(request));
        return lists.present(request, page, presentStaffJob);
      },
    );

    app.get(
      '/workflows/jobs/:id',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'workflows.getJob',
          summary: 'Get the progress of an action on many runs',
          tags: ['Admin'],
          params: strictObject({ id: id('Job id (sjb_…).') }),
          response: { 200: ref(StaffJobRecord), ...problems() },
        },
      },
      async (request) => presentStaffJob(await staffJobs.get(request.staff, request.params.id)),
    );
    done();
  };

/** @throws AppError `validation_error`. */
function readJob({ action, note, query, items, resolution }: Static<typeof StaffJobBody>): StaffJobRequest {
  const invalid = (path: string, message: string) =>
    new AppError('validation_error', {
      detail: message,
      fix: 'Name the runs with query, or the messages to resolve with items.',
      errors: [{ path, message }],
    });
  if ((query === undefined) === (items === undefined))
    throw invalid('/body', 'Exactly one of query and items is needed.');
  if (items?.some(({ recipient, email }) => recipient !== undefined && email !== undefined))
    throw invalid('/body/items', 'A line has the number of a recipient or its address, not both.');
  if (items !== undefined && action !== 'resolve')
    throw invalid('/body/items', 'A list is for the action resolve.');
  if ((query !== undefined && action === 'resolve') !== (resolution !== undefined))
    throw invalid('/body/resolution', 'Needed for resolve with a query, and only then.');
  return {
    action,
    note,
    resolution: resolution ?? null,
    items: items ?? null,
    filter: query === undefined ? null : toFilter(readFilter(query)),
  };
}

function toFilter({
  status,
  failing,
  type,
  stage,
  organizationId,
  about,
  startedBefore,
}: ReturnType<typeof readFilter>): StaffJobRequest['filter'] {
  return {
    status,
    failing,
    ...(type === undefined ? {} : { type }),
    ...(stage === undefined ? {} : { stage }),
    ...(organizationId === undefined ? {} : { organizationId }),
    ...(about === undefined ? {} : { about }),
    ...(startedBefore === undefined ? {} : { startedBefore: startedBefore.toISOString() }),
  };
}
