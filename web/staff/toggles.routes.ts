import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Note } from '../../api/admin/note.ts';
import { enumOf, strictObject } from '../../api/schemas.ts';
import type { ToggleService } from '../../domain/toggles/toggle.service.ts';
import { TOGGLE_NAMES, TOGGLES } from '../../domain/toggles/toggles.ts';
import type { AppError } from '../../platform/errors.ts';
import { type Console, NoticeQuery } from './console.ts';

/** The switches of the whole service. */
export const toggleConsole =
  ({ console, toggles }: { console: Console; toggles: ToggleService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = async (request: FastifyRequest, reply: FastifyReply, problem?: AppError) =>
      console.send(request, reply, {
        template: 'staff/toggles',
        title: 'Toggles',
        problem,
        log: { resourceType: 'toggle' },
        data: { toggles: await toggles.list(request.staff), descriptions: TOGGLES },
      });

    app.get(
      '/admin/toggles',
      {
        config: { staff: 'support' },
        schema: { operationId: 'console.toggles', querystring: NoticeQuery },
      },
      async (request, reply) => show(request, reply),
    );

    console.form(app, '/admin/toggles', {
      config: { staff: 'admin' },
      schema: {
        operationId: 'console.setToggle',
        body: strictObject({ name: enumOf(TOGGLE_NAMES), enabled: enumOf(['true', 'false']), note: Note }),
      },
      work: ({ staff, body: { name, enabled, note } }) =>
        toggles.set(staff, name, { enabled: enabled === 'true', note }),
      show,
    });
    done();
  };
