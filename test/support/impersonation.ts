import { createStaff, type TestStaff } from './staff.ts';
import type { TestApp } from './test-app.ts';

export interface TestImpersonation {
  id: string;
  token: string;
  expiresAt: string;
  staff: TestStaff;
}

/** Begins a support session in an organization, through the API. */
export async function impersonate(
  app: TestApp,
  organizationId: string,
  { write = false, staff }: { write?: boolean; staff?: TestStaff } = {},
): Promise<TestImpersonation> {
  const by = staff ?? (await createStaff(app, { role: write ? 'admin' : 'support' }));
  const started = await app.call(`/admin/orgs/${organizationId}/impersonate`, {
    method: 'POST',
    token: by.token,
    body: { reason: 'Ticket 7', write },
  });
  if (started.statusCode !== 201) throw new Error(started.body);
  const { id, token, expires_at: expiresAt } = started.json();
  return { id, token, expiresAt, staff: by };
}
