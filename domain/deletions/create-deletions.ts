import type { OptionsOf } from '../../platform/options-of.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import { createAccountDeletionService } from './account-deletion.service.ts';
import { createOrganizationDeletionService } from './organization-deletion.service.ts';

type Options = OptionsOf<typeof createAccountDeletionService> & { ownerNotifications: NotificationService };

/** Deletion of accounts and organizations, and their recovery. */
export function createDeletions(options: Options) {
  return {
    accountDeletions: createAccountDeletionService(options),
    organizationDeletions: createOrganizationDeletionService({
      ...options,
      notifications: options.ownerNotifications,
    }),
  };
}
