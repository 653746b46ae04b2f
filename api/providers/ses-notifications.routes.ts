import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import { Type } from 'typebox';
import type { SesNotificationService } from '../../domain/providers/ses-notification.service.ts';
import { enumOf, postProblems, resource } from '../schemas.ts';

/** SNS messages have up to 256 KiB, which escaping in JSON enlarges. */
const MAX_BODY_BYTES = 786_432;

export const sesNotificationRoutes =
  ({ sesNotifications }: { sesNotifications: SesNotificationService }): FastifyPluginAsyncTypebox =>
  async (app) => {
    // SNS sends JSON as text/plain.
    app.addContentTypeParser(
      'text/plain',
      { parseAs: 'string', bodyLimit: MAX_BODY_BYTES },
      (_request, body, done) => done(null, body),
    );

    app.post(
      '/providers/ses/notifications',
      {
        bodyLimit: MAX_BODY_BYTES,
        config: { public: 'signed' },
        schema: {
          operationId: 'providers.takeSesNotification',
          summary: 'Receive a notification from Amazon SES',
          description:
            'For Amazon SNS, not for agents: received mail, deliveries, bounces and complaints, signed by SNS.',
          tags: ['Providers'],
          consumes: ['text/plain'],
          security: [],
          body: Type.Unsafe<unknown>({ description: 'An SNS message, as JSON.' }),
          response: {
            200: resource(
              'acknowledgement',
              { result: enumOf(['stored', 'folded', 'ignored', 'confirmed']) },
              { description: 'The result of the notification.' },
            ),
            ...postProblems(),
          },
        },
      },
      async ({ body }) => ({
        object: 'acknowledgement' as const,
        result: await sesNotifications.process(body),
      }),
    );
  };
