import { LockMode, sql } from '@mikro-orm/core';
import type { EntityManager } from '@mikro-orm/postgresql';
import type { SecretBox } from '../../platform/crypto.ts';
import { dbOf } from '../../platform/database/bridge.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/find-page.ts';
import type { Row, RowReader } from '../../platform/database/find-rows.ts';
import { AppError, invalid } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { recordAudit } from '../audit/record-audit.ts';
import type { EventType } from '../events/event-types.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { WebhookDeliveryEntity } from './delivery.entity.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { createEndpointSecret, secretContext } from './endpoint-secret.ts';
import { endpointsInScope, findEndpoint, readEndpoint } from './find-endpoint.ts';
import { holdPendingDeliveries } from './hold-deliveries.ts';
import { wakeProbe } from './probe-start.ts';
import { startRelease } from './release-held-deliveries.ts';

export interface EndpointInput {
  url: string;
  events: EventType[];
  description?: string | null;
  /** Null: events of every inbox of the environment. */
  inboxIds?: string[] | null;
}

export interface EndpointPatch extends Partial<EndpointInput> {
  disabled?: boolean;
}

/** An endpoint and how many of its deliveries are held, of which at most {@link MAX_COUNTED_DELIVERIES} are counted. */
export interface EndpointDetails {
  endpoint: Row<WebhookEndpoint>;
  heldDeliveries: number;
}

export interface CreatedEndpoint extends EndpointDetails {
  /** The signing secret, which is not returned again. */
  secret: string;
}

/** The `disabledReason` of an endpoint that its owner disabled. */
export const DISABLED_THROUGH_API = 'Disabled through the API.';

export interface WebhookEndpointService {
  /**
   * @throws AppError `validation_error`; `unprocessable` for a URL that the egress guard refuses; `not_found` for an inbox
   * outside the scope.
   */
  create(scope: Scope, input: EndpointInput): Promise<CreatedEndpoint>;
  list(scope: Scope, page: PageRequest): Promise<Page<EndpointDetails>>;
  /** @throws AppError `not_found`. */
  get(scope: Scope, endpointId: string): Promise<EndpointDetails>;
  /**
   * Changes the given fields. Enabling a disabled endpoint releases its held deliveries; a new URL of a failing endpoint is
   * probed immediately.
   *
   * @throws AppError `not_found`, `validation_error`, `unprocessable`.
   */
  update(scope: Scope, endpointId: string, patch: EndpointPatch): Promise<EndpointDetails>;
  /**
   * Creates a new signing secret. Deliveries are also signed with the old secret for `overlapSeconds`. Drops a secret that
   * still overlaps from an earlier rotation.
   *
   * @throws AppError `not_found`.
   */
  rotateSecret(scope: Scope, endpointId: string, overlapSeconds: number): Promise<CreatedEndpoint>;
  /** Cancels the endpoint's deliveries, except for an attempt in progress. @throws AppError `not_found`. */
  delete(scope: Scope, endpointId: string): Promise<void>;
}

export interface WebhookEndpointServiceOptions {
  database: Database;
  outbox: Outbox;
  secretBox: SecretBox;
  /** Why the egress guard refuses every delivery to a URL, whatever its name resolves to; null if it does not. */
  findTargetRefusal(url: string): string | null;
}

/** Bounds the cost of the count; the exact number above this does not matter. */
export const MAX_COUNTED_DELIVERIES = 10_000;

export function createWebhookEndpointService(options: WebhookEndpointServiceOptions): WebhookEndpointService {
  const { database, outbox, secretBox, findTargetRefusal } = options;

  return {
    create: (scope, input) =>
      database.transaction(scope, async ({ em }) => {
        const id = newId('webhookEndpoint');
        const secret = createEndpointSecret();
        const endpoint = em.create(WebhookEndpointEntity, {
          id,
          organizationId: scope.organizationId,
          environmentId: scope.environmentId,
          url: parseReceiverUrl(input.url, findTargetRefusal),
          events: [...new Set(input.events)],
          description: input.description ?? null,
          inboxIds: await findInboxIds(em, scope, input.inboxIds ?? null),
          secret: secretBox.seal(secret, secretContext(id)),
          previousSecret: null,
          previousSecretExpiresAt: null,
          disabledReason: null,
          failingSince: null,
          deletedAt: null,
        });
        em.persist(endpoint);
        await audit(em, scope, id, 'created', { host: hostOf(endpoint), events: endpoint.events });
        return { endpoint, heldDeliveries: 0, secret };
      }),

    list: (scope, page) =>
      database.read(scope, async (reader) => {
        const where = [endpointsInScope(scope), { deletedAt: null }];
        const { items, next } = await findPage(reader, WebhookEndpointEntity, { where, page });
        return { items: await attachHeldDeliveries(reader, items), next };
      }),

    get: (scope, endpointId) =>
      database.read(scope, async (reader) =>
        attachHeldCount(reader, await readEndpoint(reader, scope, endpointId)),
      ),

    update: (scope, endpointId, patch) =>
      database.transaction(scope, async (transaction) => {
        const { em } = transaction;
        const found = await findEndpoint(em, scope, endpointId);
        const { disabled: wasDisabled, url: oldUrl, holdingSince: wasHoldingSince } = found;
        if (patch.url !== undefined) found.url = parseReceiverUrl(patch.url, findTargetRefusal);
        if (patch.events !== undefined) found.events = [...new Set(patch.events)];
        if (patch.description !== undefined) found.description = patch.description;
        if (patch.inboxIds !== undefined) found.inboxIds = await findInboxIds(em, scope, patch.inboxIds);
        if (patch.disabled !== undefined) setDisabled(found, patch.disabled);
        await em.flush();
        if (!wasDisabled && found.disabled) await holdPendingDeliveries(em, endpointId);
        if (wasDisabled && !found.disabled) await startRelease(transaction, outbox, endpointId);
        // The probe of a disabled endpoint ends.
        if (wasHoldingSince && (found.disabled || found.url !== oldUrl))
          wakeProbe(transaction, outbox, found);
        await audit(em, scope, endpointId, 'updated', {
          fields: Object.keys(patch),
          host: hostOf(found),
          events: found.events,
          disabled: found.disabled,
        });
        return attachHeldCount(em, found);
      }),

    rotateSecret: (scope, endpointId, overlapSeconds) =>
      database.transaction(scope, async ({ em }) => {
        const endpoint = await findEndpoint(em, scope, endpointId, LockMode.PESSIMISTIC_WRITE);
        const secret = createEndpointSecret();
        endpoint.previousSecret = overlapSeconds > 0 ? endpoint.secret : null;
        endpoint.previousSecretExpiresAt =
          overlapSeconds > 0 ? new Date(Date.now() + overlapSeconds * 1000) : null;
        endpoint.secret = secretBox.seal(secret, secretContext(endpointId));
        await audit(em, scope, endpointId, 'secret_rotated', { overlap_seconds: overlapSeconds });
        return { ...(await attachHeldCount(em, endpoint)), secret };
      }),

    delete: (scope, endpointId) =>
      database.transaction(scope, async (transaction) => {
        const endpoint = await findEndpoint(transaction.em, scope, endpointId);
        endpoint.deletedAt = new Date();
        if (endpoint.holdingSince) wakeProbe(transaction, outbox, endpoint);
        endpoint.holdingSince = null;
        await cancelDeliveries(transaction, outbox, endpoint);
        await audit(transaction.em, scope, endpointId, 'deleted', { host: hostOf(endpoint) });
      }),
  };
}

function audit(
  em: EntityManager,
  scope: Scope,
  endpointId: string,
  change: string,
  details: Record<string, unknown>,
): Promise<void> {
  return recordAudit(dbOf(em), scope, {
    action: `webhook_endpoint.${change}`,
    resourceType: 'webhook_endpoint',
    resourceId: endpointId,
    details,
  });
}

/** Path and query of a receiver's URL may be secrets. */
const hostOf = ({ url }: Pick<WebhookEndpoint, 'url'>): string => new URL(url).host;

/** Maximum number of runs signaled to end immediately. The others end when they read their row before the next attempt. */
const MAX_SIGNALED_RUNS = 500;

async function cancelDeliveries(
  transaction: Transaction,
  outbox: Outbox,
  endpoint: WebhookEndpoint,
): Promise<void> {
  const { em } = transaction;
  const waiting = await em.find(
    WebhookDeliveryEntity,
    { endpointId: endpoint.id, status: 'pending' },
    { fields: ['id', 'episode'], limit: MAX_SIGNALED_RUNS },
  );
  await em.nativeUpdate(
    WebhookDeliveryEntity,
    { endpointId: endpoint.id, status: { $in: ['pending', 'held'] } },
    {
      status: 'canceled',
      lastError: 'The endpoint was deleted.',
      nextAttemptAt: null,
      completedAt: new Date(),
    },
  );
  for (const { id, episode } of waiting) {
    outbox.enqueue(transaction, endpoint.organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, episode), signalName: CANCEL_DELIVERY, args: [] },
    });
  }
}

async function attachHeldCount(reader: RowReader, endpoint: Row<WebhookEndpoint>): Promise<EndpointDetails> {
  const [details] = await attachHeldDeliveries(reader, [endpoint]);
  return details ?? { endpoint, heldDeliveries: 0 };
}

async function attachHeldDeliveries(
  reader: RowReader,
  endpoints: Row<WebhookEndpoint>[],
): Promise<EndpointDetails[]> {
  if (endpoints.length === 0) return [];
  const rows = await reader.execute<{ id: string; held: number }[]>(
    sql`select w.id, (select count(*)::int from (
         select from webhook_deliveries d where d.endpoint_id = w.id and d.status = 'held'
         limit ${MAX_COUNTED_DELIVERIES}) counted) as held
       from webhook_endpoints w where w.id in (${endpoints.map(({ id }) => id)})`,
  );
  const heldById = new Map(rows.map(({ id, held }) => [id, held]));
  return endpoints.map((endpoint) => ({ endpoint, heldDeliveries: heldById.get(endpoint.id) ?? 0 }));
}

async function findInboxIds(
  em: EntityManager,
  scope: Scope,
  inboxIds: string[] | null,
): Promise<string[] | null> {
  if (inboxIds === null) return scope.inboxId === undefined ? null : [scope.inboxId];
  const unique = [...new Set(inboxIds)];
  for (const inboxId of unique) await findInbox(dbOf(em), scope, inboxId);
  return unique;
}

function setDisabled(endpoint: WebhookEndpoint, disabled: boolean): void {
  if (endpoint.disabled === disabled) return;
  endpoint.disabled = disabled;
  endpoint.disabledReason = disabled ? DISABLED_THROUGH_API : null;
  endpoint.holdingSince = null;
  // Enabling resets the failure state: a repaired receiver again gets the full time before it is disabled.
  if (!disabled) {
    endpoint.failingSince = null;
    endpoint.consecutiveFailures = 0;
  }
}

/**
 * Normalizes the URL. A target that can never be delivered to is refused here. Whether a name resolves to a private
 * address is checked at each delivery, because it may resolve differently by then.
 */
function parseReceiverUrl(text: string, findTargetRefusal: (url: string) => string | null): string {
  const invalidUrl = (message: string, fix: string): AppError => invalid('/body/url', message, fix);
  const url = URL.parse(text);
  if (!url) throw invalidUrl('must be an HTTPS URL', 'Use an address that starts with https://.');
  if (url.username !== '' || url.password !== '')
    throw invalidUrl(
      'must not contain credentials',
      'Remove user and password; verify the signature of each delivery instead.',
    );
  if (url.hash !== '' || text.includes('#'))
    throw invalidUrl(
      'must not have a fragment',
      'Remove everything from # on; it is never sent to a receiver.',
    );
  if (url.href.length > 2048)
    throw invalidUrl('must not be longer than 2,048 characters', 'Use a shorter URL.');
  const refusal = findTargetRefusal(url.href);
  if (refusal !== null) throw targetRefused(refusal);
  return url.href;
}

function targetRefused(refusal: string): AppError {
  return new AppError('unprocessable', {
    detail: `The service would not deliver to this URL: ${refusal}.`,
    fix: 'Use an https:// URL with a public host and the port 443, 80, 8080 or 8443. An operator can allow others with EGRESS_ALLOW and EGRESS_ALLOW_PORTS, except ports that browsers refuse for HTTP.',
    errors: [{ path: '/body/url', message: refusal }],
  });
}
