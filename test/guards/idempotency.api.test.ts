import { beforeAll, expect, test } from '@jest/globals';
import type { Operation } from '../support/contract.ts';
import { formCall } from '../support/form.ts';
import { BODIES } from '../support/operations.ts';
import { createOrganization, type TestOrganization } from '../support/organizations.ts';
import { expectProblem } from '../support/problems.ts';
import { useTestApp } from '../support/resources.ts';
import { createStaff } from '../support/staff.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({
  config: { TRUST_PROXY: '127.0.0.1', RATE_LIMIT_BURST: '1000', ORGANIZATION_RATE_LIMIT_BURST: '1000' },
});
let organization: TestOrganization;
let staffToken: string;
beforeAll(async () => {
  organization = await createOrganization(app.worker);
  staffToken = (await createStaff(app)).token;
});

/** Their requests are signed, and take effect once by ids of their senders. */
const SIGNED = [
  'billing.takeStripeEvent',
  'billingUnversioned.takeStripeEvent',
  'providers.takeRawMail',
  'providers.takeSesNotification',
];

const posts = () =>
  app.contract.operations.filter(
    ({ method, operationId }) => method === 'POST' && !SIGNED.includes(operationId),
  );
const isOfOrganization = (operation: Operation) => operation['x-permission'] !== undefined;
const isDocumented = ({ parameters = [] }: Operation) =>
  parameters.some((parameter) => parameter.in === 'header' && parameter.name === 'idempotency-key');

const PATH_WORDS: Record<string, string> = { direction: 'send', effect: 'block' };

function requestOf({ path, operationId, requestBody }: Operation): { path: string; call: Call } {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => PATH_WORDS[name] ?? 'x');
  if (requestBody?.content['multipart/form-data'])
    return { path: filled, call: formCall([{ filename: 'a.txt', content: 'a' }]) };
  const body = BODIES[operationId.replace(/Alias|Unversioned/, '')] ?? {};
  return { path: filled, call: { method: 'POST', ...(requestBody ? { body } : {}) } };
}

/** A key that is too long: who honors keys says so, and who refuses them says that. Neither changes anything. */
async function messageOf(operation: Operation, address: string): Promise<string> {
  const { path, call } = requestOf(operation);
  const response = await app.call(path, {
    ...call,
    prefix: '',
    token: isOfOrganization(operation) ? organization.token : staffToken,
    headers: { ...call.headers, 'idempotency-key': 'x'.repeat(256), 'x-forwarded-for': address },
  });
  const [error] = expectProblem(response, 'validation_error').errors as { path: string; message: string }[];
  return `${error?.path} ${error?.message}`;
}

test('every POST of an organization honors an Idempotency-Key and says so, and every other refuses it', async () => {
  expect(posts().length).toBeGreaterThan(100);
  for (const [index, operation] of posts().entries()) {
    const honors = isOfOrganization(operation);
    const { operationId } = operation;
    const message = await messageOf(operation, `192.0.2.${index}`);
    expect({ operationId, message, isDocumented: isDocumented(operation) }).toEqual({
      operationId,
      message: expect.stringMatching(
        honors ? /^Idempotency-Key must be 1 to 255/ : /^Idempotency-Key is not supported/,
      ),
      isDocumented: honors,
    });
  }
});
