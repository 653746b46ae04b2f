import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { strictObject, text } from '../../api/schemas.ts';
import type { ConnectionService } from '../../domain/connections/connection.service.ts';
import type { MemberService } from '../../domain/organizations/member.service.ts';
import type { AppError } from '../../platform/errors.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { namesOfEnvironments } from './keys.routes.ts';
import { wordsOf } from './permission-words.ts';
import { findNames } from './person-names.ts';
import { badgesOf } from './use.ts';

const PAGE_SIZE = 50;

/** The programs that people have connected by signing in. */
export const connectionPages =
  ({
    pages,
    connections,
    members,
  }: {
    pages: Pages;
    connections: ConnectionService;
    members: MemberService;
  }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) => {
      const { scope } = request;
      // Staff in a support session see those of the organization only with that permission.
      const sees = scope.member !== undefined || scope.permissions.has('members:manage');
      const page = sees
        ? await connections.list(scope, pages.readPage(request, { limit: PAGE_SIZE }))
        : { items: [], next: null };
      return pages.send(request, reply, {
        template: 'keys/connections',
        title: 'Keys and connections',
        problem,
        data: {
          connections: page.items,
          names: await findNames(members, scope),
          environments: namesOfEnvironments(request),
          badgesOf,
          wordsOf,
          next: pages.nextPage(request, page),
        },
        apiCall: { path: '/connections', query: { limit: PAGE_SIZE } },
      });
    };

    app.get(
      '/keys/connections',
      {
        config: { permission: 'usage:read' },
        schema: { operationId: 'pages.connections', querystring: listQuery({}) },
      },
      async (request, reply) => show(request, reply),
    );

    pages.form(app, '/keys/connections/end', {
      config: { permission: 'usage:read', impersonation: 'never' },
      schema: {
        operationId: 'pages.endConnection',
        body: strictObject({ connection_id: text(64) }),
      },
      work: ({ scope, body }) => connections.end(scope, body.connection_id),
      show,
      done: (request, reply) =>
        pages.seeOther(reply, pages.link(request, '/keys/connections'), 'connection-ended'),
    });
    done();
  };
