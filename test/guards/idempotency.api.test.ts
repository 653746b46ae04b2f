import { beforeAll, expect, test } from '@jest/globals';
import { billingConfig } from '../support/billing-config.ts';
import type { Operation } from '../support/contract.ts';
import { formCall } from '../support/form.ts';
import { BODIES } from '../support/operations.ts';
import { createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import { createTestSession } from '../support/sessions.ts';
import { createStaff } from '../support/staff.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({
  config: {
    ...billingConfig(),
    TRUST_PROXY: '127.0.0.1',
    RATE_LIMIT_BURST: '1000',
    ORGANIZATION_RATE_LIMIT_BURST: '1000',
  },
});
let ownerToken: string;
let staffToken: string;
beforeAll(async () => {
  const { ownerId } = await createOrganization(app.worker);
  // Keys do not hold every permission.
  ownerToken = (await createTestSession(app.worker, ownerId, { factors: ['totp'] })).token;
  staffToken = (await createStaff(app)).token;
});

const EXCEPTIONS: Record<string, string> = {
  'billing.takeStripeEvent': 'signed, and takes effect once by the id of the event',
  'billingUnversioned.takeStripeEvent': 'as above',
  'providers.takeRawMail': 'signed, and takes effect once by the id of the message',
  'providers.takeSesNotification': 'signed, and takes effect once by the id of SES',
  'domains.verify': 'reads its domain before the key: test/domains/domains.api.test.ts',
};

const posts = () =>
  app.contract.operations.filter(
    ({ method, operationId }) => method === 'POST' && !(operationId in EXCEPTIONS),
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
    token: isOfOrganization(operation) ? ownerToken : staffToken,
    headers: { ...call.headers, 'idempotency-key': 'x'.repeat(256), 'x-forwarded-for': address },
  });
  const { code, errors = [] } = response.json<{
    code: string;
    errors?: { path: string; message: string }[];
  }>();
  return `${code} ${errors[0]?.path} ${errors[0]?.message}`;
}

test('every POST of an organization honors an Idempotency-Key and says so, and every other refuses it', async () => {
  expect(posts().length).toBeGreaterThan(100);
  const wrong: object[] = [];
  for (const [index, operation] of posts().entries()) {
    const honors = isOfOrganization(operation);
    const message = await messageOf(operation, `192.0.2.${index}`);
    const expected = honors ? 'Idempotency-Key must be 1 to 255' : 'Idempotency-Key is not supported';
    if (!message.startsWith(`validation_error ${expected}`) || isDocumented(operation) !== honors)
      wrong.push({
        operationId: operation.operationId,
        honors,
        isDocumented: isDocumented(operation),
        message,
      });
  }
  expect(wrong).toEqual([]);
});
