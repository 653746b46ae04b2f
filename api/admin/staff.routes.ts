import type { FastifyPluginCallbackTypebox } from '@fastify/type-provider-typebox';
import { STAFF_ROLES } from '../../domain/staff/staff-scope.ts';
import { enumOf, id, problems, ref, resource } from '../schemas.ts';

export const StaffIdentity = resource(
  'staff_identity',
  {
    user_id: id('Your user id (usr_…).'),
    role: enumOf(STAFF_ROLES, {
      description: 'support reads, and retries or cancels work; admin may do everything.',
    }),
  },
  { $id: 'StaffIdentity', title: 'StaffIdentity' },
);

export const staffRoutes = (): FastifyPluginCallbackTypebox => (app, _options, done) => {
  app.get(
    '/me',
    {
      config: { staff: 'support' },
      schema: {
        operationId: 'staff.me',
        summary: 'Get your role as staff of the service',
        tags: ['Admin'],
        response: { 200: ref(StaffIdentity), ...problems() },
      },
    },
    async ({ staff: { staffId, role } }) => ({ object: 'staff_identity' as const, user_id: staffId, role }),
  );
  done();
};
