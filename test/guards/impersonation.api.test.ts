import { describe, expect, test } from '@jest/globals';
import type { ImpersonationAccess } from '../../domain/impersonation/impersonation-access.ts';
import { newId } from '../../platform/ids.ts';
import { digestRows, isStream, type Victim } from '../support/access-matrix.ts';
import { newNetwork } from '../support/accounts.ts';
import type { Operation } from '../support/contract.ts';
import { impersonate } from '../support/impersonation.ts';
import { buildRequest, RESOURCES, type ResourceIds } from '../support/operations.ts';
import { createOrganization } from '../support/organizations.ts';
import { useTestApp } from '../support/resources.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp({ config: { TRUST_PROXY: '127.0.0.1' } });

/** Other routes to the same handlers. */
const isAlias = ({ operationId }: Operation) => /Alias|Unversioned/.test(operationId);
const operations = () =>
  app.contract.operations.filter((operation) => operation['x-permission'] !== undefined);
const accessOf = (operation: Operation): ImpersonationAccess | undefined => operation['x-impersonation'];
const isRead = ({ method }: Operation) => method === 'GET' || method === 'HEAD';

/**
 * Every change of the API is in one of these two lists: a new one is allowed or forbidden to staff by a decision, not by
 * accident. What gives access, or outlives the session, is forbidden.
 */
const ALLOWED_WITH_WRITE =
  /^(attachments|domains|drafts|inboxes|labels|lists|messages|suppressions|threads)\.|^webhookDeliveries\.|^webhookEndpoints\.(delete|test|replay|cancelPending)$/;
const NEVER =
  /^(apiKeys|approvedRecipients|billing|connections|exports|invitations|limits|members|organization|policies|retention|sso|usage|upgradeRequests)\.|^drafts\.(approve|reject|send)$|^messages\.(create|send|sendBatch|reply|replyAll|forward|cancel|dismissInjection)$|^inboxes\.rotateCredentials$|^webhookEndpoints\.(create|update|rotateSecret)$/;
/** Reads that are forbidden: data that leaves, and the owner's money. */
const UNREADABLE = /^(exports|billing|upgradeRequests)\./;

describe('an impersonation', () => {
  test('is documented for every operation of an organization, as the lists here say', () => {
    const all = operations().filter((operation) => !isAlias(operation));
    expect(all.length).toBeGreaterThan(100);
    const wrong = all.flatMap((operation) => {
      const { operationId } = operation;
      const isNever = (isRead(operation) ? UNREADABLE : NEVER).test(operationId);
      const isAllowed = isRead(operation) ? !isNever : ALLOWED_WITH_WRITE.test(operationId) && !isNever;
      if (!isNever && !isAllowed) return [`${operationId} is in neither list`];
      const expected = isNever ? 'never' : isRead(operation) ? 'read' : 'write';
      return accessOf(operation) === expected
        ? []
        : [`${operationId} is ${accessOf(operation)}, not ${expected}`];
    });
    expect(wrong).toEqual([]);
  });

  test.each([
    ['for reading', false],
    ['for writing', true],
  ])(
    '%s makes exactly the calls that its class allows, and one for reading changes nothing',
    async (_kind, write) => {
      const { organizationId } = await createOrganization(app.worker);
      const { token } = await impersonate(app, organizationId, { write });
      const unknown = Object.fromEntries(RESOURCES.map((resource) => [resource, newId('message')]));
      const ids: ResourceIds = { ...unknown, organization: organizationId };
      const victim: Victim = { organizationId, ids: {}, markers: [], includesCaller: true };
      const before = await digestRows(victim);
      const wrong: string[] = [];
      const queue = operations().filter((operation) => !isStream(operation));
      const work = async () => {
        for (let operation = queue.shift(); operation; operation = queue.shift()) {
          const { path, call } = buildRequest(operation, ids);
          const response = await app.call(path, { ...call, token });
          const problem = response.statusCode >= 400 ? response.json() : {};
          const isRefused = response.statusCode === 403 && problem.impersonation === accessOf(operation);
          const access = accessOf(operation);
          const isAllowed = access === 'read' || (access === 'write' && write);
          if (isAllowed === isRefused || response.statusCode >= 500)
            wrong.push(
              `${operation.operationId} (${access}): ${response.statusCode} ${response.body.slice(0, 200)}`,
            );
          if (!String(response.headers['x-impersonated-by']).startsWith('usr_'))
            wrong.push(`${operation.operationId} does not say that staff made the call`);
        }
      };
      await Promise.all([1, 2, 3, 4].map(work));
      expect(wrong.sort()).toEqual([]);
      if (!write) {
        // What it calls is recorded.
        const { impersonated_operations: calls, ...rest } = await digestRows(victim);
        expect(calls).not.toMatch(/^0 /);
        expect({ ...rest, impersonated_operations: '0 ' }).toEqual(before);
      }
    },
    120_000,
  );

  test('is refused by every operation of persons and staff', async () => {
    const { organizationId } = await createOrganization(app.worker);
    const { token } = await impersonate(app, organizationId, { write: true });
    const wrong: string[] = [];
    const personal = app.contract.operations.filter(
      (operation) =>
        operation['x-permission'] === undefined &&
        operation['x-credential'] === undefined &&
        operation.security?.length !== 0,
    );
    expect(personal.length).toBeGreaterThan(20);
    for (const operation of personal) {
      // Access is decided before anything else.
      const method = operation.method as NonNullable<Call['method']>;
      const path = operation.path.replace(/\{\w+\}/g, 'none');
      // Refused requests are limited by address.
      const { statusCode } = await app.call(path, { prefix: '', method, token, headers: newNetwork() });
      if (statusCode !== 403) wrong.push(`${operation.operationId}: ${statusCode}`);
    }
    expect(wrong).toEqual([]);
  });
});
