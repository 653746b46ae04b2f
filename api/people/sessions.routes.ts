import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { SessionService } from '../../domain/sessions/session.service.ts';
import {
  changeProblems,
  id,
  NoContent,
  postProblems,
  problems,
  ref,
  resource,
  strictObject,
} from '../schemas.ts';
import { presentSession, RevokeAllSessions, SessionList } from './sessions.schemas.ts';

export const sessionRoutes =
  ({ sessions }: { sessions: SessionService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/user/me/sessions',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'user.listSessions',
          summary: 'List your active sessions',
          tags: ['User'],
          response: { 200: SessionList, ...problems() },
        },
      },
      async ({ person }) => ({ data: (await sessions.list(person)).map(presentSession) }),
    );

    app.delete(
      '/user/me/sessions/:sessionId',
      {
        config: { person: 'full' },
        schema: {
          operationId: 'user.revokeSession',
          summary: 'Sign out one session',
          tags: ['User'],
          params: strictObject({ sessionId: id('Id of the session (ses_…).') }),
          response: { 204: NoContent, ...changeProblems() },
        },
      },
      async ({ person, params }, reply) => {
        await sessions.revoke(person, params.sessionId);
        return reply.code(204).send(null);
      },
    );

    app.post(
      '/user/me/sessions/revoke-all',
      {
        config: { person: 'full', bodyMayBeEmpty: true },
        schema: {
          operationId: 'user.revokeAllSessions',
          summary: 'Sign out everywhere',
          description: 'Also ends your connections: each program has to ask you again. API keys go on.',
          tags: ['User'],
          body: ref(RevokeAllSessions),
          response: {
            200: resource(
              'session_revocation',
              {
                revoked: Type.Integer({
                  minimum: 0,
                  description: 'Number of sessions that were signed out.',
                }),
              },
              { description: 'The sessions were signed out.' },
            ),
            ...postProblems(),
          },
        },
      },
      async ({ person, body }) => ({
        object: 'session_revocation' as const,
        revoked: await sessions.revokeAll(person, { keepCurrent: body.keep_current ?? false }),
      }),
    );
    done();
  };
