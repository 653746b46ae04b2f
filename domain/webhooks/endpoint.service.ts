import { type Insertable, sql, type Updateable } from 'kysely';
import type { SecretBox } from '../../platform/crypto.ts';
import { anyOf } from '../../platform/database/any-of.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import type { Database, Transaction } from '../../platform/database/database.ts';
import { findPage } from '../../platform/database/pages.ts';
import type { Db, Tables } from '../../platform/database/tables.ts';
import { notFound } from '../../platform/errors.ts';
import { newId } from '../../platform/ids.ts';
import type { Outbox } from '../../platform/outbox/outbox.ts';
import type { Page, PageRequest } from '../../platform/pagination.ts';
import {
  CANCEL_DELIVERY,
  deliverWebhookWorkflowId,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import type { ChangeOf } from '../audit/audit-actions.ts';
import { recordAudit, replacedValues } from '../audit/record-audit.ts';
import type { EventType } from '../events/event-types.ts';
import type { Scope } from '../identity/scope.ts';
import { findInbox } from '../inboxes/find-inbox.ts';
import { requireNoAlarm } from '../messages/injection-alarms.ts';
import type { DeliveryStatus } from './delivery.entity.ts';
import { type WebhookEndpoint, WebhookEndpointEntity } from './endpoint.entity.ts';
import { DISABLED_THROUGH_API, wakeProbe } from './endpoint-health.ts';
import { createEndpointSecret, secretContext } from './endpoint-secret.ts';
import { type EndpointFilter, findEndpoint, lockEndpoint, presentEndpoints } from './find-endpoint.ts';
import { holdPendingDeliveries } from './hold-deliveries.ts';
import { parseReceiverUrl } from './receiver-url.ts';
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

/** An endpoint with the state of its deliveries. Numbers are counted up to {@link MAX_COUNTED_DELIVERIES}. */
export interface EndpointDetails {
  endpoint: WebhookEndpoint;
  heldDeliveries: number;
  pendingDeliveries: number;
  /** When the receiver last accepted a delivery; null if it has accepted none. */
  lastSuccessAt: Date | null;
}

export interface CreatedEndpoint extends EndpointDetails {
  /** The signing secret, which is not returned again. */
  secret: string;
}

export type WebhookEndpointService = ReturnType<typeof createWebhookEndpointService>;

export interface WebhookEndpointServiceOptions {
  database: Database;
  outbox: Outbox;
  secretBox: SecretBox;
  /** Why the egress guard refuses every delivery to a URL, regardless of what its name resolves to; null if it does not. */
  findTargetRefusal(url: string): string | null;
}

/** Bounds the cost of the count; the exact number above this does not matter. */
export const MAX_COUNTED_DELIVERIES = 10_000;

export function createWebhookEndpointService(options: WebhookEndpointServiceOptions) {
  const { database, outbox, secretBox, findTargetRefusal } = options;

  return {
    /**
     * @throws AppError `validation_error`; `unprocessable` for a URL that the egress guard refuses; `not_found` for an inbox
     * outside the scope; `policy_violation` for a key after an injection alarm in an inbox that it reaches.
     */
    create: (scope: Scope, input: EndpointInput): Promise<CreatedEndpoint> =>
      database.transaction(scope, async ({ db }) => {
        await requireNoAlarm(db, scope, 'creates webhook endpoints or changes their URL');
        const id = newId('webhookEndpoint');
        const secret = createEndpointSecret();
        const endpoint = await insertEndpoint(db, {
          id,
          org_id: scope.organizationId,
          env_id: scope.environmentId,
          url: parseReceiverUrl(input.url, findTargetRefusal),
          events: [...new Set(input.events)],
          description: input.description ?? null,
          inbox_ids: await findInboxIds(db, scope, input.inboxIds ?? null),
          secret: secretBox.seal(secret, secretContext(id)),
        });
        await audit(db, scope, id, 'created', { host: hostOf(endpoint), events: endpoint.events });
        return { endpoint, ...NO_DELIVERIES, secret };
      }),

    list: (scope: Scope, filter: EndpointFilter, page: PageRequest): Promise<Page<EndpointDetails>> =>
      database.read(scope, async ({ db }) => {
        const { items, next } = await findPage(presentEndpoints(db, scope, filter), 'id', page);
        return { items: await attachDeliveryState(db, items), next };
      }),

    /** @throws AppError `not_found`. */
    get: (scope: Scope, endpointId: string): Promise<EndpointDetails> =>
      database.read(scope, async ({ db }) => attachState(db, await findEndpoint(db, scope, endpointId))),

    /**
     * Changes the given fields. Enabling a disabled endpoint releases its held deliveries; a new URL of a failing endpoint is
     * probed immediately.
     *
     * @throws AppError `not_found`, `validation_error`, `unprocessable`; for a new URL also `policy_violation`, as `create`.
     */
    update: (scope: Scope, endpointId: string, patch: EndpointPatch): Promise<EndpointDetails> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const found = await findEndpoint(db, scope, endpointId);
        const { url, events, description, inboxIds, disabled = found.disabled } = patch;
        const receiver = url === undefined ? found.url : parseReceiverUrl(url, findTargetRefusal);
        if (receiver !== found.url)
          await requireNoAlarm(db, scope, 'creates webhook endpoints or changes their URL');
        const changed = await changeEndpoint(db, found, {
          url: receiver,
          events: events && [...new Set(events)],
          description,
          inbox_ids: inboxIds === undefined ? undefined : await findInboxIds(db, scope, inboxIds),
          ...(disabled === found.disabled ? {} : disabledChange(disabled)),
        });
        if (!found.disabled && disabled) await holdPendingDeliveries(db, endpointId);
        if (found.disabled && !disabled) await startRelease(transaction, outbox, endpointId);
        // The probe of a disabled endpoint ends.
        if (found.holdingSince && (disabled || changed.url !== found.url))
          wakeProbe(transaction, outbox, changed);
        await audit(db, scope, endpointId, 'updated', {
          fields: Object.keys(patch),
          host: hostOf(changed),
          events: changed.events,
          disabled,
          ...replacedValues(
            { host: hostOf(found), events: found.events, disabled: found.disabled },
            { host: hostOf(changed), events: changed.events, disabled },
          ),
        });
        return attachState(db, changed);
      }),

    /**
     * Creates a new signing secret. Deliveries are also signed with the old secret for `overlapSeconds`. A secret from
     * an earlier rotation stops working.
     *
     * @throws AppError `not_found`.
     */
    rotateSecret: (scope: Scope, endpointId: string, overlapSeconds: number): Promise<CreatedEndpoint> =>
      database.transaction(scope, async ({ db }) => {
        const found = await lockEndpoint(db, scope, endpointId);
        const secret = createEndpointSecret();
        const overlaps = overlapSeconds > 0;
        const endpoint = await changeEndpoint(db, found, {
          secret: secretBox.seal(secret, secretContext(endpointId)),
          previous_secret: overlaps ? found.secret : null,
          previous_secret_expires_at: overlaps ? new Date(Date.now() + overlapSeconds * 1000) : null,
        });
        await audit(db, scope, endpointId, 'secret_rotated', { overlap_seconds: overlapSeconds });
        return { ...(await attachState(db, endpoint)), secret };
      }),

    /** Cancels the endpoint's deliveries, except for an attempt in progress. @throws AppError `not_found`. */
    delete: (scope: Scope, endpointId: string): Promise<void> =>
      database.transaction(scope, async (transaction) => {
        const { db } = transaction;
        const endpoint = await findEndpoint(db, scope, endpointId);
        if (endpoint.holdingSince) wakeProbe(transaction, outbox, endpoint);
        await changeEndpoint(db, endpoint, { deleted_at: new Date(), holding_since: null });
        await cancelDeliveries(transaction, outbox, endpoint);
        await audit(db, scope, endpointId, 'deleted', { host: hostOf(endpoint) });
      }),
  };
}

function insertEndpoint(db: Db, endpoint: Insertable<Tables['webhook_endpoints']>): Promise<WebhookEndpoint> {
  return db
    .insertInto('webhook_endpoints')
    .values(endpoint)
    .returning(columnsOf(WebhookEndpointEntity))
    .executeTakeFirstOrThrow(() => new Error('The endpoint was not stored'));
}

function changeEndpoint(
  db: Db,
  { id }: WebhookEndpoint,
  change: Updateable<Tables['webhook_endpoints']>,
): Promise<WebhookEndpoint> {
  return db
    .updateTable('webhook_endpoints')
    .set({ ...change, updated_at: sql`now()` })
    .where('id', '=', id)
    .returning(columnsOf(WebhookEndpointEntity))
    .executeTakeFirstOrThrow(() => notFound('webhook endpoint', id));
}

/** Enabling resets the failure state: a repaired receiver gets the full time again before it is disabled. */
function disabledChange(disabled: boolean): Updateable<Tables['webhook_endpoints']> {
  if (disabled) return { disabled, disabled_reason: DISABLED_THROUGH_API, holding_since: null };
  return {
    disabled,
    disabled_reason: null,
    holding_since: null,
    failing_since: null,
    consecutive_failures: 0,
  };
}

function audit(
  db: Db,
  scope: Scope,
  endpointId: string,
  change: ChangeOf<'webhook_endpoint'>,
  details: Record<string, unknown>,
): Promise<void> {
  return recordAudit(db, scope, {
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
  const { db } = transaction;
  const waiting = await db
    .selectFrom('webhook_deliveries')
    .select(['id', 'generation'])
    .where('endpoint_id', '=', endpoint.id)
    .where('status', '=', 'pending')
    .limit(MAX_SIGNALED_RUNS)
    .execute();
  await db
    .updateTable('webhook_deliveries')
    .set({
      status: 'canceled',
      last_error: 'The endpoint was deleted.',
      next_attempt_at: null,
      completed_at: new Date(),
    })
    .where('endpoint_id', '=', endpoint.id)
    .where('status', 'in', ['pending', 'held'])
    .execute();
  for (const { id, generation } of waiting) {
    outbox.enqueue(transaction, endpoint.organizationId, {
      signal: { workflowId: deliverWebhookWorkflowId(id, generation), signalName: CANCEL_DELIVERY, args: [] },
    });
  }
}

async function attachState(db: Db, endpoint: WebhookEndpoint): Promise<EndpointDetails> {
  const [details] = await attachDeliveryState(db, [endpoint]);
  return details ?? { endpoint, ...NO_DELIVERIES };
}

const NO_DELIVERIES = { heldDeliveries: 0, pendingDeliveries: 0, lastSuccessAt: null };

/** SQL: the number of deliveries of the endpoint `w` with this status. */
const countDeliveries = (status: DeliveryStatus) =>
  sql<number>`(select count(*) from (select from webhook_deliveries d
    where d.endpoint_id = w.id and d.status = ${status} limit ${MAX_COUNTED_DELIVERIES}) counted)`;

/** Deliveries succeed almost in the order of their ids; a retry of an old one may be the last success nevertheless. */
const RECENT_DELIVERIES = 100;

const LAST_SUCCESS = sql<Date | null>`(select max(recent.completed_at) from (select d.completed_at from webhook_deliveries d
  where d.endpoint_id = w.id and d.status = 'delivered' order by d.id desc limit ${RECENT_DELIVERIES}) recent)`;

async function attachDeliveryState(
  db: Db,
  endpoints: readonly WebhookEndpoint[],
): Promise<EndpointDetails[]> {
  if (endpoints.length === 0) return [];
  const rows = await db
    .selectFrom('webhook_endpoints as w')
    .select([
      'w.id',
      countDeliveries('held').as('heldDeliveries'),
      countDeliveries('pending').as('pendingDeliveries'),
      LAST_SUCCESS.as('lastSuccessAt'),
    ])
    .where('w.id', '=', anyOf(endpoints.map(({ id }) => id)))
    .execute();
  const stateById = new Map(rows.map(({ id, ...state }) => [id, state]));
  return endpoints.map((endpoint) => ({ endpoint, ...(stateById.get(endpoint.id) ?? NO_DELIVERIES) }));
}

async function findInboxIds(db: Db, scope: Scope, inboxIds: string[] | null): Promise<string[] | null> {
  if (inboxIds === null) return scope.inboxId === undefined ? null : [scope.inboxId];
  const unique = [...new Set(inboxIds)];
  for (const inboxId of unique) await findInbox(db, scope, inboxId);
  return unique;
}
