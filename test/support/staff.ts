import type { StaffRole } from '../../domain/staff/staff-scope.ts';
import type { Database } from '../../platform/database/database.ts';
import { createTestSession, createTestUser } from './sessions.ts';

export interface TestStaff {
  userId: string;
  /** Session with both factors. */
  token: string;
  sessionId: string;
}

/** Creates a staff member and signs them in, without the API. @param worker connected as a worker. */
export async function createStaff(
  { worker }: { worker: Database },
  { role = 'admin' }: { role?: StaffRole } = {},
): Promise<TestStaff> {
  const userId = await createTestUser(worker);
  await addStaffMember(worker, userId, role);
  const { id, token } = await createTestSession(worker, userId, { factors: ['totp'] });
  return { userId, token, sessionId: id };
}

export async function addStaffMember(worker: Database, userId: string, role: StaffRole): Promise<void> {
  await worker.systemTransaction(async ({ db }) => {
    await db.insertInto('staff_members').values({ user_id: userId, role, created_by: null }).execute();
  });
}
