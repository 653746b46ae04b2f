import { beforeAll, expect, test } from '@jest/globals';
import { billingConfig } from '../support/billing-config.ts';
import type { Operation } from '../support/contract.ts';
import { createOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession, createTestUser } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';

/** Each has tests of a match, a failed match and a malformed header in test/drafts/draft-versions.api.test.ts. */
const HONORING = ['drafts.delete', 'drafts.send', 'drafts.update'];

const app = useTestApp({ config: billingConfig() });
let owner: string;
let staff: string;
beforeAll(async () => {
  const { organizationId } = await createOrganization(app.worker);
  const userId = await createTestUser(app.worker, { organizationId, role: 'owner' });
  owner = (await createTestSession(app.worker, userId)).token;
  staff = (await createStaff(app)).token;
});

const honors = ({ parameters = [] }: Operation): boolean =>
  parameters.some(({ in: place, name }) => place === 'header' && name.toLowerCase() === 'if-match');

const credentialOf = (operation: Operation): string | undefined => {
  if (operation['x-staff-role']) return staff;
  return operation.security?.length === 0 ? undefined : owner;
};

test('the operations that document If-Match are those with tests of it', () => {
  const names = app.contract.operations.filter(honors).map(({ operationId }) => operationId);
  expect([...new Set(names)].sort()).toEqual(HONORING);
});

test('every other operation refuses If-Match instead of ignoring it', async () => {
  const others = app.contract.operations.filter((operation) => !honors(operation));
  expect(others.length).toBeGreaterThan(200);
  for (const operation of others) {
    const { method, path, operationId } = operation;
    const response = await app.call(path.replaceAll(/\{\w+\}/g, 'x'), {
      prefix: '',
      method: method as 'GET',
      token: credentialOf(operation),
      headers: { 'if-match': '"1"' },
    });
    // Sign-in pages show no details.
    const said =
      response.body.includes('If-Match is not supported by this operation.') ||
      String(response.headers['content-type']).startsWith('text/html');
    expect([operationId, response.statusCode, said]).toEqual([operationId, 400, true]);
  }
});

test('paths without an operation answer as without the header', async () => {
  const headers = { 'if-match': '"1"' };
  expectProblem(await app.call('/nothing', { token: owner, headers }), 'not_found');
  expectProblem(
    await app.call('/drafts/x/send', { method: 'PUT', token: owner, headers }),
    'method_not_allowed',
  );
});
