import type { Database } from '../../platform/database/database.ts';
import type { OptionsOf } from '../../platform/options-of.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { NotificationService } from '../notifications/notification.service.ts';
import type { SuspensionService } from '../suspensions/suspension.service.ts';
import { createKeyAdministrationService } from './key-administration.service.ts';
import { createLimitAdministrationService } from './limit-administration.service.ts';
import { createOrganizationDetailsService } from './organization-details.service.ts';
import { createOrganizationDirectoryService } from './organization-directory.service.ts';
import { createOrganizationOperationsService } from './organization-operations.service.ts';
import { createOwnerAdministrationService } from './owner-administration.service.ts';
import { createStaffAdministrationService } from './staff-administration.service.ts';
import { createSuspensionAdministrationService } from './suspension-administration.service.ts';
import { createSystemEmailService } from './system-email.service.ts';
import { createUserAdministrationService } from './user-administration.service.ts';

interface Options
  extends Pick<OptionsOf<typeof createOrganizationOperationsService>, 'retentionPolicies' | 'webhookJobs'> {
  database: Database;
  outbox: Outbox;
  /** To owners. */
  notifications: NotificationService;
  suspensions: SuspensionService;
  people: OptionsOf<typeof createUserAdministrationService> &
    OptionsOf<typeof createStaffAdministrationService> &
    OptionsOf<typeof createOwnerAdministrationService>;
}

/** What staff do to organizations, people, keys, tiers and limits. */
export function createAdministration({ people, ...options }: Options) {
  return {
    organizationDirectory: createOrganizationDirectoryService(options),
    organizationDetails: createOrganizationDetailsService(options),
    organizationOperations: createOrganizationOperationsService(options),
    suspensionAdministration: createSuspensionAdministrationService(options),
    limitAdministration: createLimitAdministrationService(options),
    keyAdministration: createKeyAdministrationService(options),
    systemEmails: createSystemEmailService(options),
    userAdministration: createUserAdministrationService(people),
    staffAdministration: createStaffAdministrationService(people),
    ownerAdministration: createOwnerAdministrationService(people),
  };
}
