import type { Transaction } from '../../platform/database/database.ts';
import type { Db } from '../../platform/database/tables.ts';
import { recordAudit } from '../audit/record-audit.ts';
import { type OrganizationAct, REQUESTER_PROBLEMS, type RequesterProblem } from '../identity/requester.ts';
import type { Actor } from '../identity/scope.ts';
import type { NotificationService } from './notification.service.ts';

export interface RefusedAct {
  organizationId: string;
  act: OrganizationAct;
  /** Who requested the act; null if unknown. */
  actor: Actor | null;
  problem: RequesterProblem;
  /** Id of the draft, export or job. */
  resourceId: string;
}

/**
 * Emails owners and admins that an act was refused because its requester no longer has the permission. Sends at most
 * one email an hour for each requester, because one may have planned thousands of acts.
 */
export async function notifyRefusedAct(
  transaction: Transaction,
  notifications: Pick<NotificationService, 'notifyMembers'>,
  { organizationId, act, actor, problem, resourceId }: RefusedAct,
): Promise<void> {
  const hour = new Date().toISOString().slice(0, 13);
  await notifications.notifyMembers(transaction, {
    organizationId,
    // Only owners and admins have this permission.
    permission: 'members:manage',
    template: 'act-refused',
    params: {
      organizationId,
      act,
      resourceId,
      requester: await describeActor(transaction.db, organizationId, actor),
      problem: REQUESTER_PROBLEMS[problem],
    },
    dedupeKey: `act-refused/${organizationId}/${actor?.id ?? 'unknown'}/${hour}`,
  });
}

/** Like {@link notifyRefusedAct}, with an entry in the audit log, for acts that write no other entry. */
export async function recordRefusedAct(
  transaction: Transaction,
  notifications: Pick<NotificationService, 'notifyMembers'>,
  {
    resource,
    ...refused
  }: Omit<RefusedAct, 'resourceId'> & { resource: { type: 'export' | 'webhook_job'; id: string } },
): Promise<void> {
  const { organizationId, act, actor, problem } = refused;
  const { type: resourceType, id: resourceId } = resource;
  await recordAudit(
    transaction.db,
    { organizationId, actor: { kind: 'system', id: resourceId }, requestId: resourceId },
    {
      action: `${resourceType}.refused`,
      resourceType,
      resourceId,
      details: { refused: act, actor: actor?.id ?? null, problem },
    },
  );
  await notifyRefusedAct(transaction, notifications, { ...refused, resourceId });
}

async function describeActor(db: Db, organizationId: string, actor: Actor | null): Promise<string> {
  if (!actor) return 'unknown';
  const named = await db
    .selectNoFrom((eb) =>
      eb.fn
        .coalesce(
          eb.selectFrom('users').select('email').where('id', '=', actor.id),
          eb
            .selectFrom('api_keys')
            .select('name')
            .where('org_id', '=', organizationId)
            .where('id', '=', actor.id),
          eb
            .selectFrom('inboxes')
            .select('email')
            .where('org_id', '=', organizationId)
            .where('id', '=', actor.id),
        )
        .as('name'),
    )
    .executeTakeFirst();
  return named?.name ? `${named.name} (${actor.id})` : actor.id;
}
