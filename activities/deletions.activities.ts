import { Context } from '@temporalio/activity';
import type { AccountPurge } from '../domain/deletions/account-purge.ts';
import type { BegunPurge, DeletionPurgeService } from '../domain/deletions/deletion-purge.service.ts';
import type { OrganizationPurge, PurgeSlice } from '../domain/deletions/organization-purge.ts';
import { PURGE_SLICE_MS } from '../workflows/deletions/purge.contract.ts';
import { withApplicationFailures } from './failures.ts';
import { withHeartbeats } from './heartbeats.ts';

export type DeletionActivities = ReturnType<typeof createDeletionActivities>;

interface Deletion {
  deletionId: string;
}

export function createDeletionActivities({
  purges,
  accounts,
  organizations,
}: {
  purges: DeletionPurgeService;
  accounts: AccountPurge;
  organizations: OrganizationPurge;
}) {
  return {
    /** @returns the number of emails. */
    remindOfPurge: ({ deletionId, daysLeft }: Deletion & { daysLeft: number }): Promise<number> =>
      withApplicationFailures(() => purges.remind(deletionId, daysLeft)),

    beginPurge: ({ deletionId }: Deletion): Promise<BegunPurge> =>
      withApplicationFailures(() => purges.begin(deletionId)),

    stopPurge: ({ deletionId }: Deletion): Promise<string> =>
      withApplicationFailures(() => purges.stop(deletionId)),

    purgeAccountData: ({ deletionId }: Deletion): Promise<string> =>
      withApplicationFailures(() => accounts.purge(deletionId)),

    /** Deletes for a limited time. Every batch commits, so a retry continues with the remaining rows. */
    purgeOrganizationData: ({ deletionId }: Deletion): Promise<PurgeSlice> =>
      withHeartbeats(async () => {
        const { cancellationSignal } = Context.current();
        const slice = await organizations.purge(deletionId, {
          limitMs: PURGE_SLICE_MS,
          isAborted: () => cancellationSignal.aborted,
        });
        cancellationSignal.throwIfAborted();
        return slice;
      }),
  };
}
