import type { MemberRole } from '../../domain/identity/roles.ts';
import { createSession, type NewSession } from '../../domain/sessions/create-session.ts';
import type { Database } from '../../platform/database/database.ts';
import { newId } from '../../platform/ids.ts';

/** Creates a user without the API. Returns their id. @param worker connected as a worker. */
export async function createTestUser(
  worker: Database,
  {
    email,
    organizationId,
    role = 'owner',
  }: { email?: string; organizationId?: string; role?: MemberRole } = {},
): Promise<string> {
  const id = newId('user');
  await worker.systemTransaction(async ({ db }) => {
    await db
      .insertInto('users')
      .values({
        id,
        email: email ?? `${id}@example.test`,
        name: null,
        password_hash: null,
        email_verified_at: new Date(),
        avatar_url: null,
        deleted_at: null,
      })
      .execute();
    if (organizationId !== undefined)
      await db.insertInto('members').values({ org_id: organizationId, user_id: id, role }).execute();
  });
  return id;
}

/** Signs a user in without the API. Returns the session's id and token. */
export function createTestSession(
  worker: Database,
  userId: string,
  session: Partial<NewSession> = {},
): Promise<{ id: string; token: string }> {
  return worker.systemTransaction(({ db }) =>
    createSession(db, {
      userId,
      kind: 'full',
      method: 'password',
      factors: [],
      ip: '192.0.2.1',
      userAgent: 'test',
      ...session,
    }),
  );
}
