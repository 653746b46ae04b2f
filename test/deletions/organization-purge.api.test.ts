import { beforeAll, describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import { createDeletionPurgeService } from '../../domain/deletions/deletion-purge.service.ts';
import { createOrganizationPurge, type PurgeSlice } from '../../domain/deletions/organization-purge.ts';
import { purgeReleasedAddresses } from '../../domain/inboxes/address-claims.ts';
import { createNotificationService } from '../../domain/notifications/notification.service.ts';
import { createPersonNotificationService } from '../../domain/notifications/person-notification.service.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { newId } from '../../platform/ids.ts';
import { eventually } from '../support/eventually.ts';
import { query } from '../support/query.ts';
import { useObjectStorage, usePostgres, useStorage, useWorkerDatabase } from '../support/resources.ts';
import {
  addInternalRows,
  createRichOrganization,
  type RichOrganization,
} from '../support/rich-organization.ts';
import { recordingOutbox } from '../support/test-app.ts';

const database = useWorkerDatabase();
const owner = usePostgres('ownerUrl');
const storage = useStorage(useObjectStorage());

const { outbox } = recordingOutbox();
const purges = createDeletionPurgeService({
  database,
  notifications: createNotificationService({ outbox }),
  personNotifications: createPersonNotificationService({
    outbox,
    secretBox: createSecretBox(Buffer.alloc(32, 7).toString('base64')),
  }),
});

async function arrange(): Promise<RichOrganization> {
  const organization = await createRichOrganization(storage, { messages: 5 });
  await addInternalRows(organization.organizationId);
  return organization;
}

/** Closes the organization so long ago that its purge is due. Returns the id of the deletion. */
async function closeLongAgo(organizationId: string): Promise<string> {
  const id = newId('deletion');
  await query(
    database,
    sql`update organizations set deleted_at = now() - interval '31 days' where id = ${organizationId}`,
  );
  await query(
    database,
    sql`insert into deletions (id, kind, subject_id, deleted_by, deleted_at, due_at)
    values (${id}, 'organization', ${organizationId}, ${newId('user')}, now() - interval '31 days', now() - interval '1 day')`,
  );
  return id;
}

const options = { limitMs: 60_000, isAborted: () => false };

async function purgeAll(deletionId: string, batchSize?: number): Promise<PurgeSlice[]> {
  const service = createOrganizationPurge({
    database,
    storage,
    pause: async () => undefined,
    ...(batchSize === undefined ? {} : { batchSize }),
  });
  const slices: PurgeSlice[] = [];
  for (let isDone = false; !isDone; ) {
    const slice = await service.purge(deletionId, options);
    slices.push(slice);
    isDone = slice.isDone;
    if (slices.length > 20) throw new Error('The purge does not end.');
  }
  return slices;
}

/** Other test files apply the deltas of all organizations at any time. */
const SWEPT_TABLES = ['metric_deltas', 'usage_deltas'];
/** What the deltas are applied to, which can add rows. */
const TOTALS_TABLES = ['metric_hours', 'usage_counters', 'usage_hours'] as const;

/** Number of rows of the organization in every table that has its id. */
async function countRows(
  organizationId: string,
  { except = [] }: { except?: readonly string[] } = {},
): Promise<Record<string, number>> {
  const { rows: tables } = await owner.query<{ name: string; column: string }>(`
    select c.relname as name, a.attname as column from pg_class c
    join pg_attribute a on a.attrelid = c.oid and (a.attname = 'org_id' or a.attname = 'id' and c.relname = 'organizations')
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') order by 1`);
  const counts: Record<string, number> = {};
  for (const { name, column } of tables.filter((table) => !except.includes(table.name))) {
    const { rows } = await owner.query(
      `select count(*)::int as count from "${name}" where "${column}" = $1`,
      [organizationId],
    );
    counts[name] = rows[0].count;
  }
  return counts;
}

/** Tables with rows of the organization that expire within the hour, so that a sweep of another test deletes them. */
async function findExpiring(organizationId: string): Promise<string[]> {
  const { rows: tables } = await owner.query<{ name: string }>(`
    select table_name as name from information_schema.columns where table_schema = 'public'
    and column_name in ('expires_at', 'org_id') group by 1 having count(*) = 2 order by 1`);
  const expiring: string[] = [];
  for (const { name } of tables) {
    const { rows } = await owner.query(
      `select from "${name}" where org_id = $1 and expires_at < now() + interval '1 hour' limit 1`,
      [organizationId],
    );
    if (rows.length > 0) expiring.push(name);
  }
  return expiring;
}

/** Tables in which the text appears in any column. */
async function findText(text: string): Promise<string[]> {
  const { rows: tables } = await owner.query<{ name: string }>(
    `select relname as name from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') order by 1`,
  );
  const found: string[] = [];
  for (const { name } of tables) {
    const { rows } = await owner.query(`select from "${name}" t where strpos(t::text, $1) > 0 limit 1`, [
      text,
    ]);
    if (rows.length > 0) found.push(name);
  }
  return found;
}

const objectsLeft = async ({ objects }: RichOrganization) => {
  const sizes = await Promise.all([...objects.keys()].map((key) => storage.sizeOf(key)));
  return sizes.filter((size) => typeof size === 'number').length;
};

const statusOf = async (deletionId: string) =>
  (await query<{ status: string }>(database, sql`select status from deletions where id = ${deletionId}`))[0]
    ?.status;

describe('purging an organization', () => {
  let purged: RichOrganization;
  let other: RichOrganization;
  let otherBefore: Record<string, number>;
  let deletionId: string;
  beforeAll(async () => {
    [purged, other] = await Promise.all([arrange(), arrange()]);
    expect(await findExpiring(other.organizationId)).toEqual([]);
    otherBefore = await countRows(other.organizationId, { except: SWEPT_TABLES });
    // Without rows everywhere, the tests below could not fail.
    const before = await countRows(purged.organizationId, { except: SWEPT_TABLES });
    expect(Object.entries(before).filter(([, count]) => count === 0)).toEqual([]);
    expect(await objectsLeft(purged)).toBe(purged.objects.size);
    deletionId = await closeLongAgo(purged.organizationId);
    expect(await purges.begin(deletionId)).toBe('purging');
    await purgeAll(deletionId, 2);
  });

  test('leaves no row of it in any table, except its reserved addresses and slugs', async () => {
    const after = await countRows(purged.organizationId);
    expect(Object.entries(after).filter(([, count]) => count > 0)).toEqual([
      ['address_claims', 2],
      ['released_slugs', 2],
    ]);
    expect(await statusOf(deletionId)).toBe('purged');
  });

  test('leaves none of its words anywhere, except in its addresses, its slug and accounts of its people', async () => {
    expect(await findText(purged.marker)).toEqual(['address_claims', 'released_slugs', 'users']);
    expect(await findText(purged.organizationId)).toEqual(['address_claims', 'deletions', 'released_slugs']);
  });

  test('deletes its stored objects', async () => {
    expect(await objectsLeft(purged)).toBe(0);
  });

  test('changes nothing of another organization', async () => {
    const after = await countRows(other.organizationId, { except: SWEPT_TABLES });
    for (const table of TOTALS_TABLES) {
      expect(after[table]).toBeGreaterThanOrEqual(otherBefore[table] as number);
      after[table] = otherBefore[table] as number;
    }
    expect(after).toEqual(otherBefore);
    expect(await objectsLeft(other)).toBe(other.objects.size);
  });

  test('is not repeated', async () => {
    expect(await purgeAll(deletionId)).toEqual([{ isDone: true, rows: 0 }]);
    expect(await purges.begin(deletionId)).toBe('purged');
    expect(await purges.stop(deletionId)).toBe('purged');
  });

  test('frees addresses on its own domain at once; those on the shared one after 90 days', async () => {
    const shared = `reserved-${purged.marker}@mail.test`;
    await query(
      database,
      sql`insert into address_claims (email, org_id, inbox_id, released_at) values
        (${shared}, ${purged.organizationId}, 'inb_x', now() - interval '89 days')`,
    );
    await purgeReleasedAddresses(database);
    const left = await query<{ email: string }>(
      database,
      sql`select email from address_claims where org_id = ${purged.organizationId}`,
    );
    expect(left).toEqual([{ email: shared }]);
    await query(
      database,
      sql`update address_claims set released_at = now() - interval '91 days' where email = ${shared}`,
    );
    await purgeReleasedAddresses(database);
    expect(
      await query(database, sql`select from address_claims where org_id = ${purged.organizationId}`),
    ).toEqual([]);
  });
});

describe('a purge that is interrupted', () => {
  test('after any batch continues where it was', async () => {
    const organization = await arrange();
    const deletionId = await closeLongAgo(organization.organizationId);
    await purges.begin(deletionId);
    let interruptions = 0;
    for (let isDone = false; !isDone; interruptions += 1) {
      let batches = 0;
      // Crashes after a growing number of batches.
      const crash = async () => {
        batches += 1;
        if (batches > interruptions) throw new Error('crash');
      };
      const service = createOrganizationPurge({ database, storage, pause: crash, batchSize: 2 });
      isDone = await service.purge(deletionId, options).then(
        (slice) => slice.isDone,
        (error: Error) => {
          expect(error.message).toBe('crash');
          return false;
        },
      );
      if (interruptions > 200) throw new Error('The purge does not end.');
    }
    expect(interruptions).toBeGreaterThan(3);
    const after = await countRows(organization.organizationId);
    expect(Object.entries(after).filter(([, count]) => count > 0)).toEqual([
      ['address_claims', 2],
      ['released_slugs', 2],
    ]);
    expect(await objectsLeft(organization)).toBe(0);
  });

  test('while storage is down keeps the list of its objects, and deletes them later', async () => {
    const organization = await arrange();
    const deletionId = await closeLongAgo(organization.organizationId);
    await purges.begin(deletionId);
    const down = {
      multipartUploads: storage.multipartUploads,
      deleteMany: () => Promise.reject(new Error('storage is down')),
    };
    const service = createOrganizationPurge({ database, storage: down, pause: async () => undefined });
    await expect(service.purge(deletionId, options)).rejects.toThrow('storage is down');
    expect(await statusOf(deletionId)).toBe('purging');
    expect(await objectsLeft(organization)).toBe(organization.objects.size);
    await purgeAll(deletionId);
    expect(await objectsLeft(organization)).toBe(0);
  });

  test('by an operator stops before its next batch, and continues once it is resumed', async () => {
    const organization = await arrange();
    const deletionId = await closeLongAgo(organization.organizationId);
    await purges.begin(deletionId);
    const stopFirst = async () => {
      await purges.stop(deletionId);
    };
    const service = createOrganizationPurge({ database, storage, pause: stopFirst, batchSize: 1 });
    await expect(service.purge(deletionId, options)).rejects.toMatchObject({ code: 'conflict' });
    const { messages } = await countRows(organization.organizationId);
    expect(messages).toBe(10);
    expect(await purges.begin(deletionId)).toBe('stopped');
    await query(
      database,
      sql`update deletions set status = 'purging', generation = generation + 1 where id = ${deletionId}`,
    );
    await purgeAll(deletionId);
    expect(await statusOf(deletionId)).toBe('purged');
  });

  test('ends its slice at the time limit, and when it is aborted', async () => {
    const organization = await arrange();
    const deletionId = await closeLongAgo(organization.organizationId);
    await purges.begin(deletionId);
    const service = createOrganizationPurge({
      database,
      storage,
      pause: async () => undefined,
      batchSize: 1,
    });
    expect(await service.purge(deletionId, { ...options, limitMs: 0 })).toMatchObject({
      isDone: false,
      rows: 1,
    });
    expect(await service.purge(deletionId, { ...options, isAborted: () => true })).toMatchObject({
      isDone: false,
    });
    await purgeAll(deletionId);
  });
});

test('nothing is purged before it is due, after a recovery, or without the begin', async () => {
  const organization = await arrange();
  const deletionId = await closeLongAgo(organization.organizationId);
  const service = createOrganizationPurge({ database, storage, pause: async () => undefined });
  await expect(service.purge(deletionId, options)).rejects.toMatchObject({ code: 'conflict' });
  await query(
    database,
    sql`update deletions set due_at = now() + interval '1 minute' where id = ${deletionId}`,
  );
  expect(await purges.begin(deletionId)).toBe('not_due');
  await query(
    database,
    sql`update deletions set status = 'recovered', due_at = date_trunc('milliseconds', now()) where id = ${deletionId}`,
  );
  expect(await purges.begin(deletionId)).toBe('recovered');
  await expect(service.purge(deletionId, options)).rejects.toMatchObject({ code: 'conflict' });
  expect(await purges.begin(newId('deletion'))).toBe('gone');
  const { messages } = await countRows(organization.organizationId);
  expect(messages).toBe(10);
});

test('a row that is added while the organization goes is refused, not orphaned', async () => {
  const organization = await arrange();
  const deletionId = await closeLongAgo(organization.organizationId);
  await purges.begin(deletionId);
  await owner.query('begin');
  // Holds the lock that every inserted row of the organization takes.
  await owner.query(`select from organizations where id = $1 for key share`, [organization.organizationId]);
  const purging = purgeAll(deletionId);
  await owner.query(
    `insert into audit_entries (id, org_id, action, actor_kind, actor_id, resource_type, resource_id, details, created_at)
     values ($1, $2, 'x.y', 'system', 'x', 'x', 'x', '{}', now())`,
    [newId('auditEntry'), organization.organizationId],
  );
  await owner.query('commit');
  await purging;
  const {
    address_claims: claims,
    released_slugs: slugs,
    ...rest
  } = await countRows(organization.organizationId);
  expect([claims, slugs]).toEqual([2, 2]);
  expect(Object.values(rest).every((count) => count === 0)).toBe(true);
});

test('a purge and the counting of usage do not lock each other out', async () => {
  const { organizationId } = await arrange();
  const deletionId = await closeLongAgo(organizationId);
  await purges.begin(deletionId);
  await owner.query(
    `insert into usage_deltas (org_id, counter, at, amount) values ($1, 'api_calls', now(), 1)`,
    [organizationId],
  );
  await owner.query('begin');
  // As in applyUsageDeltas, which locks deltas before it counts them.
  await owner.query('delete from usage_deltas where org_id = $1', [organizationId]);
  const purging = purgeAll(deletionId);
  await eventually(async () => {
    const { rows } = await owner.query(
      'select 1 from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid))',
    );
    expect(rows).not.toEqual([]);
  });
  await owner.query(
    `insert into usage_counters (org_id, counter, period_start, amount) values ($1, 'api_calls', '2020-01-01', 1)`,
    [organizationId],
  );
  await owner.query('commit');
  await purging;
  expect(await query(database, sql`select id from organizations where id = ${organizationId}`)).toEqual([]);
});

test('every table of an organization is purged by name, or goes with the organization by a foreign key', async () => {
  const { rows } = await owner.query<{ name: string }>(`
    select c.relname as name from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attname = 'org_id'
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and not exists (select from pg_constraint f where f.conrelid = c.oid and f.contype = 'f' and f.confdeltype = 'c')`);
  expect(rows.map(({ name }) => name).sort()).toEqual([
    // Kept for 90 days.
    'address_claims',
    // Deleted by name in the transaction that deletes the organization.
    'api_requests',
    'idempotency_keys',
    'metric_deltas',
    'outbox',
    // Kept for 90 days.
    'released_slugs',
    // Deleted with the objects.
    'unclaimed_objects',
    'usage_deltas',
  ]);
});
