import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import { strictObject, text } from '../../api/schemas.ts';
import { type AppError, invalid } from '../../platform/errors.ts';
import type { Pages } from '../shell/pages.ts';

const HOUR_MS = 3_600_000;
/** What names of people and agents can look like. */
const NAMES = ['support@agents.example', 'x'.repeat(200), 'שלום עולם', '🤖 <b>Agent</b> & Co.'];

/** Every part of the design system on one page. Registered in development only. */
export const componentPages =
  ({ pages }: { pages: Pages }): FastifyPluginCallbackTypebox =>
  (app, _options, done) => {
    const show = (problem?: AppError): Parameters<Pages['send']>[2] => {
      const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
      return {
        template: 'components/components',
        title: 'Components',
        problem,
        data: {
          names: NAMES,
          now: new Date(now),
          chart: {
            label: 'Messages in the last 24 hours',
            unit: 'hour',
            series: [
              ['delivered', 'Delivered', 'good'],
              ['bounced', 'Bounced', 'bad'],
            ],
            points: Array.from({ length: 24 }, (_each, index) => ({
              at: new Date(now - (23 - index) * HOUR_MS),
              values: { delivered: (index * 7) % 19, bounced: index % 5 === 0 ? 2 : 0 },
            })),
          },
        },
        apiCall: { path: '/inboxes', query: { limit: 25 } },
      };
    };

    app.get(
      '/_components',
      { config: { public: true }, schema: { operationId: 'pages.components' } },
      async (request, reply) => pages.send(request, reply, show()),
    );

    pages.form(app, '/_components', {
      config: { public: true },
      schema: {
        operationId: 'pages.submitComponents',
        body: strictObject({
          name: text(100),
          address: text(254),
          role: text(20),
          note: text(1_000),
          permission: Type.Optional(Type.Any()),
        }),
      },
      work: async () => {
        throw invalid('/body/name', 'is taken', 'Choose another name.');
      },
      show: (request, reply, problem) => pages.send(request, reply, show(problem)),
      done: (_request, reply) => pages.seeOther(reply, '/_components'),
    });
    done();
  };
