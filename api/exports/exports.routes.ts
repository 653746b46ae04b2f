import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { ExportService } from '../../domain/exports/export.service.ts';
import { AppError } from '../../platform/errors.ts';
import { changeProblems, id, problems, ref, strictObject } from '../schemas.ts';
import { ExportRecord, presentExport } from './exports.schemas.ts';

const OneOrganization = strictObject({ id: id('Id of the credential’s own organization (org_…).') });
const OneExport = strictObject({ ...OneOrganization.properties, export_id: id('Export id (exp_…).') });
const ExportQuery = strictObject({
  fresh: Type.Optional(
    Type.Boolean({
      description:
        'Create a new archive even if one is ready, unless it is less than ten minutes old. A running export is joined.',
    }),
  ),
});

/** A browser or proxy loads the URL before anyone asks for it. `Purpose` and `X-Moz` are the older forms. */
function isPrefetch(headers: IncomingHttpHeaders): boolean {
  return ['sec-purpose', 'purpose', 'x-purpose', 'x-moz'].some((name) =>
    /prefetch|prerender|preview/i.test(String(headers[name] ?? '')),
  );
}

function notPrefetched(): AppError {
  return new AppError('conflict', {
    detail: 'The request is a prefetch, and this operation starts an export.',
    fix: 'Request it without the header Sec-Purpose when the export is wanted.',
  });
}

/** Polling interval suggested to clients. */
const RETRY_AFTER_SECONDS = 10;

export const exportRoutes =
  ({
    exports,
    unversioned = false,
  }: {
    exports: ExportService;
    /** Registers the same operations without the /api/v1 prefix. */
    unversioned?: boolean;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const operation = (name: string, summary: string) => ({
      operationId: `${unversioned ? 'exportsUnversioned' : 'exports'}.${name}`,
      summary: unversioned ? `${summary} (same as /api/v1)` : summary,
      tags: ['Export'],
    });

    app.get(
      '/organizations/:id/export',
      {
        config: { permission: 'export:create', readPermission: 'export:create', exemptFromUsageLimit: true },
        // HEAD must not start anything.
        exposeHeadRoute: false,
        schema: {
          ...operation('startOrJoin', 'Export the organization: 202 until the archive is ready'),
          params: OneOrganization,
          querystring: ExportQuery,
          response: { 200: ref(ExportRecord), 202: ref(ExportRecord), ...problems(409) },
        },
      },
      async ({ scope, params, query, headers }, reply) => {
        if (isPrefetch(headers)) throw notPrefetched();
        const record = presentExport(
          await exports.startOrJoin(scope, params.id, { fresh: query.fresh ?? false }),
        );
        reply.header('cache-control', 'no-store');
        if (record.status !== 'ready') reply.code(202).header('retry-after', String(RETRY_AFTER_SECONDS));
        return record;
      },
    );

    app.get(
      '/organizations/:id/exports/:export_id',
      {
        config: { permission: 'export:create', readPermission: 'export:create', exemptFromUsageLimit: true },
        schema: {
          ...operation('get', 'Get an export'),
          params: OneExport,
          response: { 200: ref(ExportRecord), ...problems() },
        },
      },
      async ({ scope, params }, reply) => {
        reply.header('cache-control', 'no-store');
        return presentExport(await exports.get(scope, params.id, params.export_id));
      },
    );

    app.delete(
      '/organizations/:id/exports/:export_id',
      {
        config: { permission: 'export:create', readPermission: 'export:create', exemptFromUsageLimit: true },
        schema: {
          ...operation('remove', 'Cancel an export or delete its archive'),
          params: OneExport,
          response: { 200: ref(ExportRecord), ...changeProblems() },
        },
      },
      async ({ scope, params }) => presentExport(await exports.remove(scope, params.id, params.export_id)),
    );
    done();
  };
