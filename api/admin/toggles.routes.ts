import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { type Static, Type } from 'typebox';
import type { ToggleService, ToggleState } from '../../domain/toggles/toggle.service.ts';
import { TOGGLE_NAMES, TOGGLES } from '../../domain/toggles/toggles.ts';
import {
  changeProblems,
  enumOf,
  nullableText,
  nullableTimestamp,
  problems,
  ref,
  resource,
  strictObject,
  text,
} from '../schemas.ts';
import { Note } from './note.ts';

export const ToggleRecord = resource(
  'toggle',
  {
    name: enumOf(TOGGLE_NAMES),
    enabled: Type.Boolean({ description: 'True unless staff have switched it off.' }),
    description: text(500),
    when_off: text(500, { description: 'What happens while it is off, and how it ends.' }),
    note: nullableText(2_000, { description: 'Reason of the last change; null if it was never changed.' }),
    changed_by: nullableText(128, { description: 'User id of the staff member of the last change.' }),
    changed_at: nullableTimestamp(),
  },
  { $id: 'Toggle', title: 'Toggle' },
);

export const ToggleList = strictObject(
  { data: Type.Array(ref(ToggleRecord), { maxItems: 100 }) },
  { $id: 'ToggleList', title: 'ToggleList' },
);

export const toggleRoutes =
  ({ toggles }: { toggles: ToggleService }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    app.get(
      '/toggles',
      {
        config: { staff: 'support' },
        schema: {
          operationId: 'toggles.list',
          summary: 'List the switches of the service',
          tags: ['Admin'],
          response: { 200: ref(ToggleList), ...problems() },
        },
      },
      async ({ staff }) => ({ data: (await toggles.list(staff)).map(presentToggle) }),
    );

    app.put(
      '/toggles/:name',
      {
        config: { staff: 'admin' },
        schema: {
          operationId: 'toggles.set',
          summary: 'Switch something of the whole service off, or on again',
          description:
            'Holds in every process with its next decision. What was held meanwhile is released when it is switched on.',
          tags: ['Admin'],
          params: strictObject({ name: enumOf(TOGGLE_NAMES, { description: 'The switch.' }) }),
          body: strictObject({ enabled: Type.Boolean(), note: Note }, { title: 'SetToggle' }),
          response: { 200: ref(ToggleRecord), ...changeProblems() },
        },
      },
      async ({ staff, params, body }) => presentToggle(await toggles.set(staff, params.name, body)),
    );
    done();
  };

function presentToggle({ name, enabled, changed }: ToggleState): Static<typeof ToggleRecord> {
  return {
    object: 'toggle',
    name,
    enabled,
    description: TOGGLES[name].description,
    when_off: TOGGLES[name].whenOff,
    note: changed?.note ?? null,
    changed_by: changed?.changedBy ?? null,
    changed_at: changed?.changedAt.toISOString() ?? null,
  };
}
