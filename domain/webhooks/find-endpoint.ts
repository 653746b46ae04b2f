import type { FilterQuery, LockMode } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import { findRow, type Row, type RowReader } from '../../platform/database/find-rows.ts';
import { AppError, notFound } from '../../platform/errors.ts';
import type { Scope } from '../identity/scope.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';

/** @throws AppError `not_found`, also for a deleted endpoint. */
export async function findEndpoint(
  em: EntityManager,
  scope: Scope,
  endpointId: string,
  lockMode?: LockMode.PESSIMISTIC_READ | LockMode.PESSIMISTIC_WRITE,
): Promise<WebhookEndpoint> {
  const endpoint = await em.findOne(
    WebhookEndpointEntity,
    { $and: [{ id: endpointId, deletedAt: null }, endpointsInScope(scope)] },
    lockMode === undefined ? {} : { lockMode },
  );
  if (!endpoint) throw notFound('webhook endpoint', endpointId);
  return endpoint;
}

/** As {@link findEndpoint}, for use-cases that do not change it. */
export async function readEndpoint(
  reader: RowReader,
  scope: Scope,
  endpointId: string,
): Promise<Row<WebhookEndpoint>> {
  const endpoint = await findRow(reader, WebhookEndpointEntity, {
    where: [{ id: endpointId, deletedAt: null }, endpointsInScope(scope)],
  });
  if (!endpoint) throw notFound('webhook endpoint', endpointId);
  return endpoint;
}

/** A credential bound to one inbox sees only endpoints that are limited to that inbox. */
export function endpointsInScope(scope: Scope): FilterQuery<WebhookEndpoint> {
  return {
    organizationId: scope.organizationId,
    environmentId: scope.environmentId,
    ...(scope.inboxId === undefined ? {} : { inboxIds: { $contained: [scope.inboxId] } }),
  };
}

/** @throws AppError `conflict` if the endpoint is disabled. */
export function requireEnabled({ id, disabled, disabledReason }: WebhookEndpoint): void {
  if (!disabled) return;
  throw new AppError('conflict', {
    detail: `The endpoint ${id} is disabled: ${disabledReason ?? 'no reason given'}`,
    fix: `Enable it first: PATCH /api/v1/webhooks/endpoints/${id} with {"disabled": false}.`,
  });
}
