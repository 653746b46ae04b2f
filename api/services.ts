import { createProviders } from '../domain/providers/create-providers.ts';
import { createSharedServices } from '../domain/shared-services.ts';
import { readEgressOptions } from '../platform/egress/egress.ts';
import { createMailRooms } from './rooms/mail.ts';
import { createPeopleRooms } from './rooms/people.ts';
import type { ServiceOptions } from './rooms/service-options.ts';
import { createStaffRooms } from './rooms/staff.ts';

/** Every service that routes call, under the name that routes use. */
export type Services = ReturnType<typeof createServices>;

export function createServices(options: ServiceOptions) {
  const { config, database, workerDatabase = database } = options;
  const shared = createSharedServices({ ...options, workerDatabase });
  const mail = createMailRooms(options, shared);
  return {
    ...mail,
    ...createPeopleRooms(options, shared),
    ...createStaffRooms(options, shared, mail),
    ...createProviders({
      ...options,
      workerDatabase,
      receipts: shared.receipts,
      outcomes: shared.outcomes,
      egressOptions: readEgressOptions(config),
    }),
  };
}
