import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { purgeEvents } from '../../domain/events/purge-events.ts';
import { createQuotaCache } from '../../domain/usage/quota-cache.ts';
import {
  releaseHeldDeliveries,
  releaseHeldForEnabledEndpoints,
} from '../../domain/webhooks/release-held-deliveries.ts';
import {
  releaseUsageLimited,
  releaseUsageLimitedForAll,
} from '../../domain/webhooks/release-usage-limited.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { json } from '../../platform/database/json.ts';
import { lowestIdAt, newId } from '../../platform/ids.ts';
import { administerLimits, setLimit, type TestLimits } from '../support/limits.ts';
import { observeStatements } from '../support/observe-statements.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { arrangeDeliveries, httpAnswer } from '../support/webhook-deliveries.ts';

const app = useTestApp();
const { outbox, commands } = recordingOutbox();
let limits: TestLimits;
beforeAll(async () => {
  limits = administerLimits({
    database: app.worker,
    onChange: async (transaction, organizationId) => {
      await releaseUsageLimited(transaction, outbox, { organizationId, now: new Date() });
    },
  });
});

const nextMonth = () => {
  const now = new Date();
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1, 12));
};

/** An endpoint with deliveries, and a limit of one that is used up. */
async function arrange(count = 3) {
  const given = await arrangeDeliveries(app.worker, count);
  const { organizationId, token } = given.organization;
  const allow = (limit: number, expiresAt: Date | null = null) =>
    setLimit(limits, organizationId, { resource: 'webhook_deliveries', limit, expiresAt });
  await allow(1);
  const posted: number[] = [];
  const deliveries = given.worker(async () => {
    posted.push(Date.now());
    return httpAnswer(200);
  });
  const attemptAll = async () => {
    const outcomes: string[] = [];
    for (const { id, generation, status } of await given.deliveries()) {
      if (status !== 'pending') continue;
      const outcome = await deliveries.attempt(id, true, generation);
      outcomes.push(outcome.kind === 'settled' ? outcome.status : outcome.kind);
    }
    return outcomes;
  };
  const statuses = async () => (await given.deliveries()).map(({ status }) => status);
  const current = async () =>
    (await app.call('/org/usage', { token })).json().counters.webhook_deliveries.current;
  return { ...given, organizationId, token, allow, posted, deliveries, attemptAll, statuses, current };
}

const HELD = 'held: usage limit of webhook_deliveries reached';

test('holds deliveries over a hard limit and shows the reason', async () => {
  const { deliveryIds, endpointId, token, attemptAll, statuses, posted, current } = await arrange();
  expect(await attemptAll()).toEqual(['delivered', HELD, HELD]);
  expect(await statuses()).toEqual(['delivered', 'held', 'held']);
  expect([posted.length, await current()]).toEqual([1, 1]);
  const shown = await app.call(`/webhooks/deliveries/${deliveryIds[1]}`, { token });
  expect(shown.json()).toMatchObject({ status: 'held', held_for: 'usage_limit', next_attempt_at: null });
  const listed = await app.call(`/webhooks/endpoints/${endpointId}/deliveries?status=delivered`, { token });
  expect(listed.json().data).toMatchObject([{ held_for: null, attempt_count: 1 }]);
  // Endpoint maintenance does not release them.
  await releaseHeldForEnabledEndpoints(app.worker, outbox);
  await app.worker.systemTransaction((transaction) => releaseHeldDeliveries(transaction, outbox, endpointId));
  expect(await statuses()).toEqual(['delivered', 'held', 'held']);
});

describe('held deliveries are released', () => {
  test('when the override is raised, up to the new limit', async () => {
    const { deliveryIds, allow, attemptAll, statuses, current } = await arrange(4);
    await attemptAll();
    await allow(3);
    expect(await statuses()).toEqual(['delivered', 'pending', 'pending', 'held']);
    expect(commands.map(({ start }) => start?.workflowId)).toEqual(
      expect.arrayContaining([`webhook/${deliveryIds[1]}/2`, `webhook/${deliveryIds[2]}/2`]),
    );
    expect(await attemptAll()).toEqual(['delivered', 'delivered']);
    expect(await current()).toBe(3);
  });

  test('when the override is removed', async () => {
    const { organizationId, attemptAll, statuses } = await arrange();
    await attemptAll();
    await limits.removeOverride(organizationId, 'webhook_deliveries', 'test');
    expect(await statuses()).toEqual(['delivered', 'pending', 'pending']);
    expect(await attemptAll()).toEqual(['delivered', 'delivered']);
  });

  test('by the sweep after the override has expired', async () => {
    const { organizationId, allow, attemptAll, statuses } = await arrange();
    await attemptAll();
    await allow(1, new Date(Date.now() + 3_600_000));
    expect(await statuses()).toEqual(['delivered', 'held', 'held']);
    await query(
      app.worker,
      sql`update limit_overrides set expires_at = now() - interval '1 second' where org_id = ${organizationId}`,
    );
    await releaseUsageLimitedForAll(app.worker, outbox);
    expect(await statuses()).toEqual(['delivered', 'pending', 'pending']);
  });

  test('when the tier changes', async () => {
    const { organizationId, attemptAll, statuses } = await arrange();
    await attemptAll();
    await limits.removeOverride(organizationId, 'webhook_deliveries', 'test');
    await query(
      app.worker,
      sql`update webhook_deliveries set status = 'held', held_for = 'usage_limit' where org_id = ${organizationId} and status = 'pending'`,
    );
    await limits.setTier(organizationId, 'free', 'test');
    expect(await statuses()).toEqual(['delivered', 'pending', 'pending']);
  });

  test('when the organization removes its custom limit', async () => {
    const { organizationId, token, attemptAll, statuses } = await arrange();
    await limits.removeOverride(organizationId, 'webhook_deliveries', 'test');
    const cap = (own_limit: number | null) =>
      app.call('/org/limits', {
        method: 'PUT',
        token,
        body: { counters: { webhook_deliveries: { own_limit } } },
      });
    await cap(1);
    expect(await attemptAll()).toEqual(['delivered', HELD, HELD]);
    await cap(2);
    expect(await statuses()).toEqual(['delivered', 'pending', 'held']);
    await cap(null);
    expect(await statuses()).toEqual(['delivered', 'pending', 'pending']);
  });

  test('by the sweep in the new month', async () => {
    const { attemptAll, statuses } = await arrange();
    await attemptAll();
    await releaseUsageLimitedForAll(app.worker, outbox);
    expect(await statuses()).toEqual(['delivered', 'held', 'held']);
    await releaseUsageLimitedForAll(app.worker, outbox, nextMonth);
    expect(await statuses()).toEqual(['delivered', 'pending', 'held']);
  });

  test('only if the endpoint is enabled', async () => {
    const { endpointId, allow, attemptAll, statuses } = await arrange();
    await attemptAll();
    const disable = (disabled: boolean) =>
      query(app.worker, sql`update webhook_endpoints set disabled = ${disabled} where id = ${endpointId}`);
    await disable(true);
    await allow(10);
    await releaseUsageLimitedForAll(app.worker, outbox);
    expect(await statuses()).toEqual(['delivered', 'held', 'held']);
    await disable(false);
    await releaseUsageLimitedForAll(app.worker, outbox);
    expect(await statuses()).toEqual(['delivered', 'pending', 'pending']);
  });
});

test('keeps events of held deliveries when old events are purged', async () => {
  const { organizationId, endpointId, organization } = await arrange(0);
  const oldId = (days: number) => lowestIdAt('event', new Date(Date.now() - days * 86_400_000));
  const add = async (days: number, heldFor: 'usage_limit' | null) => {
    // Only this test's events: the lowest id of a time may belong to another test.
    const eventId = `${oldId(days).slice(0, -8)}${newId('event').slice(-8)}`;
    await app.worker.systemTransaction(async ({ db }) => {
      await db
        .insertInto('events')
        .values({
          id: eventId,
          org_id: organizationId,
          env_id: organization.productionEnvironmentId,
          type: 'message.received',
          data: json({}),
        })
        .execute();
      await db
        .insertInto('webhook_deliveries')
        .values({
          id: newId('webhookDelivery'),
          org_id: organizationId,
          endpoint_id: endpointId,
          event_id: eventId,
          status: 'held',
          held_for: heldFor,
        })
        .execute();
    });
    return eventId;
  };
  const waiting = await add(31, 'usage_limit');
  const old = [await add(31, null), await add(62, 'usage_limit')];
  await purgeEvents(app.worker, 30);
  const left = await app.worker.db
    .selectFrom('events')
    .select(columnsOf(EventEntity))
    .where('org_id', '=', organizationId)
    .execute();
  expect(left.map(({ id }) => id)).toContain(waiting);
  expect(left.filter(({ id }) => old.includes(id))).toEqual([]);
});

test('caches that an organization has no hard limit', async () => {
  const { organization } = await arrangeDeliveries(app.worker, 0);
  let now = Date.now();
  const quota = createQuotaCache({
    counter: 'webhook_deliveries',
    now: () => new Date(now),
    ttlMs: 5_000,
  });
  let statements = 0;
  const count = () => {
    statements += 1;
  };
  const db = observeStatements(app.worker.db, { before: count });
  const ask = () => quota.remaining(db, organization.organizationId);
  expect([await ask(), await ask(), await ask()]).toEqual([null, null, null]);
  expect(statements).toBe(1);
  now += 5_000;
  expect(await ask()).toBeNull();
  expect(statements).toBe(2);
});
