import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import {
  createAnnouncementMailing,
  MAIL_BATCH_SIZE,
  overdueAnnouncements,
} from '../../domain/announcements/mail-announcement.ts';
import { createPersonNotificationService } from '../../domain/notifications/person-notification.service.ts';
import { createSecretBox } from '../../platform/crypto.ts';
import { newId } from '../../platform/ids.ts';
import { createAccountQuickly } from '../support/accounts.ts';
import { createDatabaseUrls } from '../support/isolated-database.ts';
import { createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { query } from '../support/query.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';
import { recordingOutbox } from '../support/test-app.ts';
import { useResource } from '../support/use-resource.ts';

// An audience may be everyone, which includes the people of other files.
const urls = useResource(
  () => createDatabaseUrls('notifications'),
  async () => undefined,
);
const app = useTestApp(() => ({ databaseUrl: urls.apiUrl, workerUrl: urls.workerUrl }));

const MAINTENANCE = { title: 'Maintenance', text: 'On Sunday.\n\nFor an hour.', note: 'Planned' };
const HOUR_MS = 3_600_000;
const inHours = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString();

async function announce(body: object) {
  const { token } = await createStaff(app);
  return app.call('/admin/notifications', { method: 'POST', token, body: { ...MAINTENANCE, ...body } });
}
const withdraw = async (id: string) =>
  app.call(`/admin/notifications/${id}?note=Done`, {
    method: 'DELETE',
    token: (await createStaff(app)).token,
  });
const shownTo = async (token: string) =>
  (await app.call('/notices', { token })).json().data.map(({ title }: { title: string }) => title);

/** A member who is no owner, with a session. */
async function createMember(organizationId: string): Promise<string> {
  const userId = await createTestUser(app.worker, { organizationId, role: 'viewer' });
  return (await createTestSession(app.worker, userId)).token;
}

describe('an announcement', () => {
  test('is shown to its audience, within its window, until it is withdrawn', async () => {
    const owner = await createAccountQuickly(app);
    const member = await createMember(owner.organizationId);
    const other = await createAccountQuickly(app);
    await query(
      app.worker,
      sql`update organizations set tier = 'business' where id = ${owner.organizationId} returning id`,
    );
    const ids: string[] = [];
    const bodies = [
      { title: 'Everyone', audience: 'all', ends_at: inHours(1) },
      { title: 'Business', audience: 'tier', tier: 'business' },
      { title: 'One', audience: 'organizations', org_ids: [other.organizationId] },
      { title: 'Owners', audience: 'owners' },
      { title: 'Later', audience: 'all', starts_at: inHours(1) },
      { title: 'Mailed', audience: 'all', delivery: 'mailed' },
    ];
    for (const body of bodies) {
      const response = await announce({ delivery: 'shown', ...body });
      expect(response.statusCode).toBe(201);
      ids.push(response.json().id);
    }
    expect(await shownTo(owner.token)).toEqual(['Owners', 'Business', 'Everyone']);
    expect(await shownTo(member)).toEqual(['Business', 'Everyone']);
    expect(await shownTo(other.token)).toEqual(['Owners', 'One', 'Everyone']);

    await query(
      app.worker,
      sql`update announcements set ends_at = now() where title = 'Everyone' returning id`,
    );
    expect((await withdraw(ids[1] ?? '')).statusCode).toBe(204);
    expectProblem(await withdraw(ids[1] ?? ''), 'conflict');
    expect(await shownTo(member)).toEqual([]);
    const { token } = await createStaff(app, { role: 'support' });
    const listed = (await app.call('/admin/notifications', { token })).json().data;
    expect(listed.map((row: { title: string; status: string }) => [row.title, row.status])).toEqual([
      ['Mailed', 'active'],
      ['Later', 'scheduled'],
      ['Owners', 'active'],
      ['One', 'active'],
      ['Business', 'withdrawn'],
      ['Everyone', 'ended'],
    ]);
    const [entry] = await query(
      app.worker,
      sql`select action, reason from audit_entries where org_id = ${other.organizationId} and actor_kind = 'staff'`,
    );
    expect(entry).toEqual({ action: 'announcement.created', reason: 'Planned' });
  });

  test('needs what its audience says, and an end after its start', async () => {
    const shown = { delivery: 'shown' };
    for (const body of [
      { ...shown, audience: 'tier' },
      { ...shown, audience: 'all', tier: 'free' },
      { ...shown, audience: 'organizations' },
      { ...shown, audience: 'organizations', org_ids: [newId('organization')] },
      { ...shown, audience: 'all', ends_at: inHours(-1) },
      { ...shown, audience: 'all', title: 'Two\nlines' },
      { ...shown, audience: 'all', note: '' },
    ])
      expectProblem(await announce(body), 'validation_error');
    const { token } = await createStaff(app, { role: 'support' });
    const body = { ...MAINTENANCE, ...shown, audience: 'all' };
    const refused = await app.call('/admin/notifications', { method: 'POST', token, body });
    expectProblem(refused, 'permission_denied');
    expectProblem(await withdraw(newId('notice')), 'not_found');
  });
});

describe('a mailed announcement', () => {
  const arrange = () => {
    const { outbox, commands } = recordingOutbox();
    const secretBox = createSecretBox(app.config.ENCRYPTION_KEY);
    const notifications = createPersonNotificationService({ outbox, secretBox });
    return { commands, mailing: createAnnouncementMailing({ database: app.worker, outbox, notifications }) };
  };
  const mailed = async (id: string) => {
    const rows = await query<{ userId: string; params: object }>(
      app.worker,
      sql`select user_id as "userId", params from notifications where dedupe_key like ${`announcement/${id}/%`}`,
    );
    return rows;
  };

  test('is withdrawn if its author is no admin any more, also between two batches', async () => {
    const { organizationId } = await createOrganization(app.worker);
    await addOwners(organizationId, MAIL_BATCH_SIZE);
    const author = await createStaff(app);
    const created = await app.call('/admin/notifications', {
      method: 'POST',
      token: author.token,
      body: { ...MAINTENANCE, delivery: 'mailed', audience: 'organizations', org_ids: [organizationId] },
    });
    const { id } = created.json();
    const { mailing } = arrange();
    expect(await mailing.mailBatch(id)).toMatchObject({ kind: 'more', total: MAIL_BATCH_SIZE });
    await query(
      app.worker,
      sql`update staff_members set role = 'support' where user_id = ${author.userId} returning user_id`,
    );
    expect(await mailing.mailBatch(id)).toEqual({ kind: 'withdrawn', total: MAIL_BATCH_SIZE });
    expect(await mailed(id)).toHaveLength(MAIL_BATCH_SIZE);
    const list = await app.call('/admin/notifications', { token: (await createStaff(app)).token });
    expect(list.json().data).toContainEqual(
      expect.objectContaining({ id, withdrawn_at: expect.any(String) }),
    );
  });

  test('reaches every owner once, in batches, also if two runs work on it', async () => {
    const people = MAIL_BATCH_SIZE + 20;
    const organizations = await Promise.all([createOrganization(app.worker), createOrganization(app.worker)]);
    for (const { organizationId } of organizations) await addOwners(organizationId, people / 2);
    // An owner of both gets one email; a suspended and a deleted owner get none.
    const [first, second] = organizations;
    await query(
      app.worker,
      sql`insert into members (org_id, user_id, role, created_at)
      values (${second.organizationId}, ${first.ownerId}, 'owner', now()) returning user_id`,
    );
    await query(
      app.worker,
      sql`update users set status = 'suspended' where id = ${second.ownerId} returning id`,
    );
    const response = await announce({
      delivery: 'mailed',
      audience: 'organizations',
      org_ids: organizations.map(({ organizationId }) => organizationId),
    });
    const { id } = response.json();
    expect(app.commands.at(-1)?.start).toMatchObject({
      workflowType: 'mailAnnouncement',
      input: { announcementId: id },
    });
    const { commands, mailing } = arrange();
    const batches = [
      ...(await Promise.all([mailing.mailBatch(id), mailing.mailBatch(id)])),
      await mailing.mailBatch(id),
    ];
    expect(batches.map(({ kind }) => kind).sort()).toEqual(['done', 'done', 'more']);
    const rows = await mailed(id);
    expect(rows).toHaveLength(people + 1);
    expect(new Set(rows.map(({ userId }) => userId)).size).toBe(people + 1);
    expect(rows[0]?.params).toEqual({ title: 'Maintenance', text: MAINTENANCE.text });
    expect(commands).toHaveLength(people + 1);
    const [row] = await query(
      app.worker,
      sql`select mailed_count as count, mailed_at is not null as done from announcements where id = ${id}`,
    );
    expect(row).toEqual({ count: people + 1, done: true });
  });

  test('stops when it is withdrawn, and is found by the reconciler if its run is lost', async () => {
    const { organizationId } = await createOrganization(app.worker);
    const audience = { audience: 'organizations', org_ids: [organizationId], delivery: 'mailed' };
    const [lost, withdrawn] = [(await announce(audience)).json(), (await announce(audience)).json()];
    await query(
      app.worker,
      sql`update announcements set starts_at = now() - interval '1 hour' where id = any(${[lost.id, withdrawn.id]})
      returning id`,
    );
    await withdraw(withdrawn.id);
    const overdue = await overdueAnnouncements(app.worker).take(100);
    expect(overdue.map(({ start }) => start.input)).toEqual([
      { announcementId: lost.id, startsAt: expect.any(String) },
    ]);
    const { mailing } = arrange();
    expect(await mailing.mailBatch(withdrawn.id)).toEqual({ kind: 'withdrawn', total: 0 });
    expect(await mailed(withdrawn.id)).toEqual([]);
    expect(await mailing.mailBatch(lost.id)).toEqual({ kind: 'done', total: 1 });
  });
});

async function addOwners(organizationId: string, count: number): Promise<void> {
  const ids = Array.from({ length: count }, () => newId('user'));
  await query(
    app.worker,
    sql`insert into users (id, email, status, created_at, updated_at)
    select id, id || '@people.example', 'active', now(), now() from unnest(${`{${ids.join(',')}}`}::text[]) id
    returning id`,
  );
  await query(
    app.worker,
    sql`insert into members (org_id, user_id, role, created_at)
    select ${organizationId}, id, 'owner', now() from unnest(${`{${ids.join(',')}}`}::text[]) id returning user_id`,
  );
}
