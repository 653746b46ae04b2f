import { expect, test } from '@jest/globals';
import { createActorNameService } from '../../domain/audit/actor-names.ts';
import { createInbox, createOrganization } from '../support/organizations.ts';
import { useApiDatabase, useWorkerDatabase } from '../support/resources.ts';
import { createTestUser } from '../support/sessions.ts';

const database = useApiDatabase();
const worker = useWorkerDatabase();

test('names people, keys and inboxes of the organization, and of no other', async () => {
  const names = createActorNameService({ database });
  const own = await createOrganization(worker);
  const other = await createOrganization(worker);
  const { organizationId } = own;
  const userId = await createTestUser(worker, { organizationId, role: 'developer' });
  const inbox = await createInbox(worker, own);
  const ids = [userId, own.keyId, inbox.id, null, 'usr_unknown', other.keyId, other.ownerId, userId];
  const found = await names.find(own, ids);
  expect([...found.keys()].sort()).toEqual([inbox.id, own.keyId, userId].sort());
  expect(found.get(inbox.id)).toBe(inbox.email);
  expect(await names.find(own, [null])).toEqual(new Map());
});
