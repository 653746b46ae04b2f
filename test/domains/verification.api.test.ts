import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { DomainEntity } from '../../domain/domains/domain.entity.ts';
import { createDomainService, type DomainService } from '../../domain/domains/domain.service.ts';
import { overdueDomains } from '../../domain/domains/overdue-domains.ts';
import {
  createVerificationService,
  type VerificationService,
} from '../../domain/domains/verification.service.ts';
import { EventEntity } from '../../domain/events/event.entity.ts';
import { createWebhookEvents } from '../../domain/webhooks/webhook-events.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { columnsOf } from '../../platform/database/columns-of.ts';
import { createDnsLookup } from '../../platform/dns.ts';
import { startDnsServer } from '../support/dns-server.ts';
import { publishRecords } from '../support/domains.ts';
import { createOrganization } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { useWorkerDatabase } from '../support/resources.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { testScope } from '../support/test-scope.ts';
import { useResource } from '../support/use-resource.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const database = useWorkerDatabase();
const server = useResource(startDnsServer, (dns) => dns.stop());
let domains: DomainService;
let verifications: VerificationService;
const { outbox } = recordingOutbox();
beforeAll(() => {
  const parts = {
    database,
    events: createWebhookEvents({ outbox }),
    dns: createDnsLookup({ DNS_SERVERS: server.address, DNS_TIMEOUT_MS: 10_000, DNS_TRIES: 1 }),
    settings: { spfMechanism: 'include:bounces.mail.test', mxHost: 'mx.mail.test' },
  };
  const secretBox = createSecretBox(Buffer.alloc(32, 7).toString('base64'));
  domains = createDomainService({ ...parts, outbox, secretBox, ownDomains: ['mail.test'] });
  verifications = createVerificationService(parts);
});

async function arrange() {
  const organization = await createOrganization(database);
  const scope = testScope(organization);
  const { domain, records } = await domains.create(scope, {
    domainName: `d${randomUUID().slice(0, 8)}.example`,
  });
  const published = records.map((record) => ({ ...record, status: 'missing', found: null }));
  const { id } = domain;
  return {
    id,
    scope,
    publish: () => publishRecords(server, published),
    unpublish: () => {
      for (const { name } of records) server.remove(name);
    },
    failDns: (failure: 'SERVFAIL' | null) => {
      for (const { name } of records) server.fail(name, failure);
    },
    check: (generation = 1) => verifications.check(id, generation, { now: true }),
    state: () =>
      database.db
        .selectFrom('domains')
        .select(columnsOf(DomainEntity))
        .where('id', '=', id)
        .executeTakeFirstOrThrow(),
    /** Moves the start of the series, or the last or next check, into the past. */
    setBack: (column: 'generation_started_at' | 'last_checked_at' | 'next_check_at', ms: number) =>
      query(
        database,
        sql`update domains set ${sql.ref(column)} = now() - ${ms} * interval '1 millisecond' where id = ${id}`,
      ),
    async recheck() {
      await query(
        database,
        sql`update domains set last_checked_at = now() - interval '1 day' where id = ${id}`,
      );
      await verifications.recheckVerified(() => undefined);
    },
    log: () =>
      database.db
        .selectFrom('audit_entries')
        .select(['action', 'actor_kind as actorKind', 'details'])
        .where('resource_id', '=', id)
        .where('actor_kind', '=', 'system')
        .orderBy('id')
        .execute(),
    events: () =>
      database.db
        .selectFrom('events')
        .select(columnsOf(EventEntity))
        .where('org_id', '=', organization.organizationId)
        .where('type', '=', 'domain.verified')
        .execute(),
  };
}

describe('the checks of a generation', () => {
  test('are postponed until they are due, unless one is requested now', async () => {
    const { id, check } = await arrange();
    expect(await verifications.check(id, 1, { now: false })).toEqual({
      nextCheckInMs: expect.any(Number),
      detail: 'Waiting for the first check.',
    });
    expect(await check()).toEqual({
      nextCheckInMs: expect.any(Number),
      detail: 'Required records missing: ownership, spf, dkim.',
    });
  });

  test('end with the verification, which is announced once even if repeated', async () => {
    const arranged = await arrange();
    arranged.publish();
    expect(await arranged.check()).toBe('verified');
    expect(await arranged.check()).toBe('verified');
    expect(await arranged.state()).toMatchObject({ verificationStatus: 'verified', nextCheckAt: null });
    expect(await arranged.events()).toHaveLength(1);
    expect((await arranged.log()).map(({ action }) => action)).toEqual(['domain.verified']);
  });

  test('fail the domain at the end of the window', async () => {
    const arranged = await arrange();
    await arranged.setBack('generation_started_at', 72 * HOUR_MS - 60_000);
    expect(await arranged.check()).toMatchObject({ nextCheckInMs: expect.any(Number) });
    await arranged.setBack('generation_started_at', 72 * HOUR_MS);
    expect(await arranged.check()).toBe('failed');
    expect(await arranged.state()).toMatchObject({
      verificationStatus: 'failed',
      spfStatus: 'failed',
      dkimStatus: 'failed',
      nextCheckAt: null,
      statusReason: 'Not verified in time. Required records missing: ownership, spf, dkim.',
    });
    expect(await arranged.log()).toEqual([
      {
        action: 'domain.failed',
        actorKind: 'system',
        details: expect.objectContaining({
          status_reason: 'Not verified in time. Required records missing: ownership, spf, dkim.',
        }),
      },
    ]);
  });

  test('do not fail the domain for two weeks while DNS gives no answer', async () => {
    const arranged = await arrange();
    arranged.failDns('SERVFAIL');
    await arranged.setBack('generation_started_at', 13 * DAY_MS);
    expect(await arranged.check()).toMatchObject({ nextCheckInMs: expect.any(Number) });
    expect(await arranged.state()).toMatchObject({ verificationStatus: 'pending', spfStatus: 'pending' });
    await arranged.setBack('generation_started_at', 14 * DAY_MS);
    expect(await arranged.check()).toBe('failed');
  });

  test('end when the domain is deleted or a newer series starts', async () => {
    const arranged = await arrange();
    await arranged.setBack('generation_started_at', 72 * HOUR_MS);
    await arranged.check();
    await domains.verify(arranged.scope, arranged.id, await domains.checkDns(arranged.scope, arranged.id));
    expect(await arranged.state()).toMatchObject({ verificationStatus: 'pending', generation: 2 });
    expect(await arranged.check(1)).toBe('superseded');
    await domains.delete(arranged.scope, arranged.id);
    expect(await arranged.check(2)).toBe('deleted');
  });

  test('store the reason when an operator stops them', async () => {
    const arranged = await arrange();
    await verifications.stop(arranged.id, 1);
    expect(await arranged.state()).toMatchObject({
      verificationStatus: 'failed',
      statusReason: expect.stringContaining('operator'),
    });
  });

  test('the reconciler finds a series without a run, at most every ten minutes', async () => {
    const arranged = await arrange();
    const source = overdueDomains(database, verifications);
    const starts = async () => (await source.take(10_000)).map(({ start }) => start.workflowId);
    expect(await starts()).not.toContain(`domain/${arranged.id}/1`);
    await arranged.setBack('next_check_at', 10 * 60_000);
    expect(await starts()).toContain(`domain/${arranged.id}/1`);
    expect(await starts()).not.toContain(`domain/${arranged.id}/1`);
  });
});

describe('the daily recheck', () => {
  async function verified() {
    const arranged = await arrange();
    arranged.publish();
    await arranged.check();
    return arranged;
  }

  test('tolerates two days without records, not three', async () => {
    const { unpublish: withdraw, recheck, state } = await verified();
    withdraw();
    await recheck();
    await recheck();
    expect(await state()).toMatchObject({
      verificationStatus: 'verified',
      spfStatus: 'verified',
      failedChecks: 2,
      statusReason: 'Required records missing: ownership, spf, dkim.',
    });
    await recheck();
    expect(await state()).toMatchObject({
      verificationStatus: 'failed',
      spfStatus: 'failed',
      dkimStatus: 'failed',
    });
  });

  test('resets the count when the records are back, without an event', async () => {
    const { unpublish: withdraw, publish: republish, recheck, state, events } = await verified();
    withdraw();
    await recheck();
    await recheck();
    republish();
    await recheck();
    expect(await state()).toMatchObject({ failedChecks: 0, statusReason: null });
    withdraw();
    await recheck();
    expect(await state()).toMatchObject({ verificationStatus: 'verified', failedChecks: 1 });
    expect(await events()).toHaveLength(1);
  });

  test('ignores DNS that does not answer', async () => {
    const { failDns, recheck, state } = await verified();
    failDns('SERVFAIL');
    for (let day = 0; day < 4; day += 1) await recheck();
    expect(await state()).toMatchObject({
      verificationStatus: 'verified',
      failedChecks: 0,
      dkimStatus: 'verified',
    });
  });

  test('announces a failed domain again once it is verified', async () => {
    const arranged = await verified();
    arranged.unpublish();
    for (let day = 0; day < 3; day += 1) await arranged.recheck();
    arranged.publish();
    await domains.verify(arranged.scope, arranged.id, await domains.checkDns(arranged.scope, arranged.id));
    expect(await arranged.state()).toMatchObject({ verificationStatus: 'verified', failedChecks: 0 });
    expect(await arranged.events()).toHaveLength(2);
  });

  test('checks a domain once a day, however often it runs', async () => {
    const arranged = await verified();
    arranged.unpublish();
    await verifications.recheckVerified(() => undefined);
    expect(await arranged.state()).toMatchObject({ failedChecks: 0 });
  });

  test('deletes a retired key after a week', async () => {
    const arranged = await verified();
    const { records } = await domains.rotateDkim(arranged.scope, arranged.id);
    publishRecords(
      server,
      records.map((record) => ({ ...record, status: 'missing', found: null })),
    );
    await arranged.check(2);
    const keys = async () =>
      (await domains.get(arranged.scope, arranged.id)).records.filter(({ purpose }) => purpose === 'dkim');
    expect(await keys()).toHaveLength(2);
    await query(
      database,
      sql`update dkim_keys set retired_at = now() - interval '8 days' where domain_id = ${arranged.id} and state = 'retiring'`,
    );
    await verifications.recheckVerified(() => undefined);
    expect(await keys()).toHaveLength(1);
  });
});
