import { sql } from 'kysely';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Db } from '../../platform/database/tables.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { ENDPOINT_STATE, type EndpointState } from './endpoint-health.ts';

export interface EndpointFilter {
  state?: EndpointState | undefined;
}

/** @throws AppError `not_found`, also for a deleted endpoint. */
export async function findEndpoint(db: Db, scope: Scope, endpointId: string): Promise<WebhookEndpoint> {
  const endpoint = await presentEndpoints(db, scope).where('id', '=', endpointId).executeTakeFirst();
  if (!endpoint) throw notFound('webhook endpoint', endpointId);
  return endpoint;
}

/** Finds the endpoint and locks it until the transaction ends. @throws AppError `not_found`, also for a deleted endpoint. */
export async function lockEndpoint(db: Db, scope: Scope, endpointId: string): Promise<WebhookEndpoint> {
  const endpoint = await presentEndpoints(db, scope)
    .where('id', '=', endpointId)
    .forUpdate()
    .executeTakeFirst();
  if (!endpoint) throw notFound('webhook endpoint', endpointId);
  return endpoint;
}

/** Those that are not deleted. */
export const presentEndpoints = (db: Db, scope: Scope, { state }: EndpointFilter = {}) =>
  endpointsInScope(db, scope)
    .where('deleted_at', 'is', null)
    .$if(state !== undefined, (query) => query.where(ENDPOINT_STATE, '=', state as EndpointState));

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
