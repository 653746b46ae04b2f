import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { presentCredentials, type SubmissionServer } from '../../api/inboxes/credentials.schemas.ts';
import { singleLineText } from '../../api/messages/addresses.ts';
import { strictObject, text } from '../../api/schemas.ts';
import type { CredentialService } from '../../domain/inboxes/credential.service.ts';
import type { InboxService } from '../../domain/inboxes/inbox.service.ts';
import { MAX_ALIASES } from '../../domain/inboxes/inbox-aliases.ts';
import { pauserOf } from '../../domain/inboxes/sending-pause.ts';
import type { AppError } from '../../platform/errors.ts';
import { listQuery } from '../shell/forms.ts';
import type { Pages } from '../shell/pages.ts';
import { InboxParams } from './inbox.routes.ts';
import { inboxState, PAUSERS } from './inbox-words.ts';

export interface InboxSettingsDependencies {
  pages: Pages;
  inboxes: InboxService;
  credentials: CredentialService;
  config: SubmissionServer;
}

/** An address has at most 320 characters, and a line break. */
const MAX_ALIASES_LENGTH = MAX_ALIASES * 322;

/** What an inbox is, its name and aliases, its SMTP password, pause and deletion. */
export const inboxSettingsPages =
  ({ pages, inboxes, credentials, config }: InboxSettingsDependencies): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    async function show(request: FastifyRequest, reply: FastifyReply, problem?: AppError, password?: string) {
      const { scope, params } = request;
      const { id } = params as { id: string };
      const inbox = await inboxes.getWithMail(scope, id);
      const pauser = pauserOf(inbox);
      return pages.send(request, reply, {
        template: 'inboxes/settings',
        title: inbox.email,
        problem,
        data: {
          heading: inbox.displayName || inbox.email,
          inbox: { ...inbox, state: inboxState(inbox) },
          pausedBy: pauser && PAUSERS[pauser],
          smtp: inbox.deletedAt ? undefined : presentCredentials(config, await credentials.get(scope, id)),
          password,
          maxAliases: MAX_ALIASES,
          maxAliasesLength: MAX_ALIASES_LENGTH,
        },
        apiCall: { path: `/inboxes/${id}` },
      });
    }

    app.get(
      '/inboxes/:id/settings',
      {
        config: { permission: 'inboxes:read' },
        schema: { operationId: 'pages.inboxSettings', params: InboxParams, querystring: listQuery({}) },
      },
      (request, reply) => show(request, reply),
    );

    pages.form(app, '/inboxes/:id/settings', {
      config: { permission: 'inboxes:write' },
      schema: {
        operationId: 'pages.updateInbox',
        params: InboxParams,
        body: strictObject({ display_name: singleLineText(255), aliases: text(MAX_ALIASES_LENGTH) }),
      },
      work: ({ scope, params, body }) =>
        inboxes.update(scope, params.id, {
          displayName: body.display_name.trim() || null,
          aliases: body.aliases.split(/[\s,;]+/).filter(Boolean),
        }),
      show,
      done: (request, reply) =>
        pages.seeOther(reply, pages.link(request, `/inboxes/${request.params.id}/settings`), 'saved'),
    });

    pages.form(app, '/inboxes/:id/credentials/rotate', {
      config: { permission: 'inboxes:write', alsoRequires: 'messages:send', impersonation: 'never' },
      schema: { operationId: 'pages.rotateInboxCredentials', params: InboxParams, body: strictObject({}) },
      work: ({ scope, params }) => credentials.rotate(scope, params.id),
      show,
      // The password is shown once, so this page is not redirected to.
      done: (request, reply, { password }) => show(request, reply, undefined, password),
    });
    done();
  };
