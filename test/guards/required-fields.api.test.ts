import { beforeAll, expect, test } from '@jest/globals';
import type { Operation } from '../support/contract.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { buildRequest } from '../support/operations.ts';
import { createKey } from '../support/organizations.ts';
import { createResources, readResourceIds } from '../support/resource-ids.ts';
import { useObjectStorage, useTestApp } from '../support/resources.ts';
import { addInternalRows, asSchemaOwner, createRichOrganization } from '../support/rich-organization.ts';

const objects = useObjectStorage();
const app = useTestApp(() => ({ config: objects.environment }));

let organizationId: string;
let environmentId: string;
let token: string;
beforeAll(async () => {
  ({ organizationId } = await createRichOrganization(createMemoryStorage(new Map())));
  await addInternalRows(organizationId);
  environmentId = await asSchemaOwner(async (client) => {
    const { rows } = await client.query(
      `select id from environments where org_id = $1 and kind = 'production'`,
      [organizationId],
    );
    return rows[0].id;
  });
  ({ token } = await createKey(app.worker, { organizationId }));
});

/** Operations of keys that get a body, which the document says must be there. */
const operations = () =>
  app.contract.operations.filter(
    ({ method, requestBody, ...operation }) =>
      ['POST', 'PUT'].includes(method) &&
      operation['x-permission'] &&
      !operation['x-alias-of'] &&
      requestBody?.required &&
      requestBody.content['application/json'],
  );

function requiredOf({ requestBody }: Operation): string[] {
  const { $ref = '' } = (requestBody?.content['application/json']?.schema ?? {}) as { $ref?: string };
  const schema = app.contract.description.components.schemas[$ref.split('/').at(-1) ?? ''];
  return (schema as { required?: string[] } | undefined)?.required ?? [];
}

test('what an operation cannot do without is required in the document', async () => {
  const existing = await readResourceIds(organizationId, environmentId);
  const wrong: object[] = [];
  for (const operation of operations()) {
    const ids = { ...existing, ...(await createResources(app, token)) };
    const { path, call } = buildRequest(operation, ids);
    const response = await app.call(path, { ...call, token, body: {} });
    const required = requiredOf(operation);
    const { code, errors = [] } = response.json<{ code?: string; errors?: { path: string }[] }>();
    const missing = code === 'no_recipients' ? ['to'] : errors.map((error) => error.path);
    const isKnown = missing.every((name) => required.includes(name));
    if (!isKnown || (response.statusCode === 422 && missing.length === 0))
      wrong.push({ operation: operation.operationId, required, body: response.body });
  }
  expect(operations().length).toBeGreaterThan(25);
  expect(wrong).toEqual([]);
});
