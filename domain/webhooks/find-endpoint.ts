import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';

/** @throws AppError `not_found`, also for a deleted endpoint. */
export async function findEndpoint(db: Db, scope: Scope, endpointId: string): Promise<WebhookEndpoint> {
  const endpoint = await endpointsInScope(db, scope)
    .where('id', '=', endpointId)
    .where('deleted_at', 'is', null)
    .executeTakeFirst();
  if (!endpoint) throw notFound('webhook endpoint', endpointId);
  return endpoint;
}

/** Finds the endpoint and locks it until the transaction ends. @throws AppError `not_found`, also for a deleted endpoint. */
export async function lockEndpoint(db: Db, scope: Scope, endpointId: string): Promise<WebhookEndpoint> {
  const endpoint = await endpointsInScope(db, scope)
    .where('id', '=', endpointId)
    .where('deleted_at', 'is', null)
    .forUpdate()
    .executeTakeFirst();
  if (!endpoint) throw notFound('webhook endpoint', endpointId);
  return endpoint;
}

/** A credential bound to one inbox sees only endpoints that are limited to that inbox. */
export function endpointsInScope(db: Db, { organizationId, environmentId, inboxId }: Scope) {
  return db
    .selectFrom('webhook_endpoints')
    .select(columnsOf(WebhookEndpointEntity))
    .where('org_id', '=', organizationId)
    .where('env_id', '=', environmentId)
    .$if(inboxId !== undefined, (query) => query.where(sql<boolean>`inbox_ids <@ ${[inboxId]}`));
}

/** @throws AppError `conflict` if the endpoint is disabled. */
export function requireEnabled({ id, disabled, disabledReason }: WebhookEndpoint): void {
  if (!disabled) return;
  throw new AppError('conflict', {
    detail: `The endpoint ${id} is disabled: ${disabledReason ?? 'no reason given'}`,
    fix: `Enable it first: PATCH /api/v1/webhooks/endpoints/${id} with {"disabled": false}.`,
  });
}
