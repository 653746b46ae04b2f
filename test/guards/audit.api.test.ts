import { describe, expect, test } from '@jest/globals';
import { sql } from '@mikro-orm/core';
import type { Operation } from '../support/contract.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { buildRequest, type ResourceIds } from '../support/operations.ts';
import { createKey } from '../support/organizations.ts';
import { createResources, readResourceIds } from '../support/resource-ids.ts';
import { useTestApp } from '../support/resources.ts';
import { addInternalRows, createRichOrganization } from '../support/rich-organization.ts';
import { createTestSession } from '../support/sessions.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp();

/** Changes without an audit entry, and why. */
const NOT_AUDITED: [RegExp, string][] = [
  [/^drafts\.(create|update|delete|send)$/, 'work with mail, which the message and its events record'],
  [/^messages\./, 'work with mail, which the message and its events record'],
  [/^threads\.delete$/, 'works with mail'],
  [/^attachments\.upload$/, 'works with mail'],
  [/^webhookEndpoints\.test$/, 'changes nothing; the delivery records it'],
  [/^webhookDeliveries\.(retry|cancel)$/, 'the delivery records it with its attempts'],
  [/^policies\.preview$/, 'changes nothing'],
  [/^sso\.test$/, 'starts a sign-in that changes nothing; GET /org/sso/{id}/attempts records it'],
  [/^domains\.verify$/, 'looks up the records, and changes nothing that the caller chooses'],
];
/** Reads that change something. */
const CHANGING_READS = /^exports\.start/;

/** Other routes to the same handlers. */
const isAlias = ({ operationId }: Operation) => /Alias|Unversioned/.test(operationId);
const isChange = ({ method, operationId }: Operation) => method !== 'GET' || CHANGING_READS.test(operationId);
const changes = () =>
  app.contract.operations.filter(
    (operation) => operation['x-permission'] !== undefined && isChange(operation) && !isAlias(operation),
  );
const isAudited = ({ operationId }: Operation) => !NOT_AUDITED.some(([pattern]) => pattern.test(operationId));

interface World {
  organizationId: string;
  /** Session of an owner, who has just signed in with a second factor. */
  token: string;
  ids: ResourceIds;
}

async function createWorld(): Promise<World> {
  const { organizationId } = await createRichOrganization(createMemoryStorage(new Map()));
  await addInternalRows(organizationId);
  const [facts] = await app.worker.query<{ ownerId: string; environmentId: string }>(sql`
    select m.user_id as "ownerId", e.id as "environmentId"
    from members m join environments e on e.org_id = m.org_id and e.kind = 'production'
    where m.org_id = ${organizationId} and m.role = 'owner'`);
  const { ownerId = '', environmentId = '' } = facts ?? {};
  const { token } = await createTestSession(app.worker, ownerId, { factors: ['totp'] });
  const ids = {
    ...(await readResourceIds(organizationId, environmentId)),
    ...(await createResources(app, token)),
  };
  return { organizationId, token, ids };
}

type Arrange = (world: World) => Promise<{ ids?: ResourceIds; body?: unknown }>;
/** Sends the world's draft with a key, so that it waits for an approval. */
const submitDraft: Arrange = async ({ organizationId, ids }) => {
  await app.worker.query(sql`
    update organization_policies set require_send_approval = 'all' where org_id = ${organizationId} returning org_id`);
  const { token } = await createKey(app.worker, { organizationId });
  const submitted = await app.call(`/drafts/${ids.draft}/send`, { method: 'POST', token });
  return { body: { version: submitted.json().version } };
};

/** What an operation needs beyond a world and its body in BODIES, to succeed and change something. */
const ARRANGEMENTS: Record<string, Arrange> = {
  'organization.deleteEnvironment': async ({ token }) => {
    const body = { name: 'Staging' };
    const created = await app.call('/org/environments', { method: 'POST', token, body });
    return { ids: { environment: created.json().id } };
  },
  'organization.delete': async ({ token }) => ({
    body: { name: (await app.call('/org', { token })).json().name },
  }),
  'organization.transferOwnership': async ({ ids }) => ({ body: { user_id: ids.member } }),
  'domains.delete': async ({ organizationId }) => {
    await app.worker.query(
      sql`update inboxes set deleted_at = now() where org_id = ${organizationId} returning id`,
    );
    return {};
  },
  'drafts.approve': submitDraft,
  'drafts.reject': submitDraft,
  'sso.activate': async ({ organizationId, ids }) => {
    await app.worker.query(sql`
      update sso_configurations set status = 'tested', tested_at = now(), domains = array(
        select domain_name from domains where org_id = ${organizationId} and verification_status = 'verified')
      where id = ${ids.ssoConfiguration} returning id`);
    return {};
  },
  'inboxes.resume': async ({ ids }) => {
    await app.worker.query(sql`update inboxes set send_paused = true where id = ${ids.inbox} returning id`);
    return {};
  },
};

interface Entry {
  action: string;
  credentialId: string;
  ip: string | null;
  details: unknown;
}

async function perform(operation: Operation) {
  const world = await createWorld();
  const { ids, body } = (await ARRANGEMENTS[operation.operationId]?.(world)) ?? {};
  const { path, call } = buildRequest(operation, { ...world.ids, ...ids });
  const request: Call = { ...call, token: world.token, ...(body === undefined ? {} : { body }) };
  const response = await app.call(path, request);
  const entries = await app.worker.query<Entry>(sql`
    select action, credential_id as "credentialId", ip, details from audit_entries
    where org_id = ${world.organizationId} and request_id = ${String(response.headers['x-request-id'])}`);
  return { response, entries };
}

/** Secrets that a response shows once. */
const secretsOf = (body: string): string[] =>
  [...body.matchAll(/"(?:token|secret|password|key)":\s*"([^"]{8,})"/g)].map(([, secret = '']) => secret);

describe('the audit log', () => {
  test('has an entry for every change, unless a reason is documented', async () => {
    const audited = changes().filter(isAudited);
    expect(audited.length).toBeGreaterThan(35);
    const problems: string[] = [];
    const queue = [...audited];
    const work = async () => {
      for (let operation = queue.shift(); operation; operation = queue.shift()) {
        const { operationId } = operation;
        const { response, entries } = await perform(operation);
        const { statusCode, body } = response;
        if (statusCode >= 300) problems.push(`${operationId} failed: ${body}`);
        else if (entries.length === 0) problems.push(`${operationId} wrote no entry (recordAudit)`);
        for (const { action, credentialId, ip, details } of entries) {
          if (!/^[a-z_]+\.[a-z_]+$/.test(action)) problems.push(`${operationId}: ${action}`);
          if (!credentialId.startsWith('ses_') || ip === null)
            problems.push(`${operationId} does not say with which credential and from where`);
          if (secretsOf(body).some((secret) => JSON.stringify(details).includes(secret)))
            problems.push(`${operationId} shows a secret`);
        }
      }
    };
    await Promise.all([1, 2, 3].map(work));
    expect(problems.sort()).toEqual([]);
  }, 240_000);

  test('has no exception for an operation that does not exist', () => {
    for (const [pattern] of NOT_AUDITED)
      expect({ pattern, exists: changes().some(({ operationId }) => pattern.test(operationId)) }).toEqual({
        pattern,
        exists: true,
      });
  });
});
