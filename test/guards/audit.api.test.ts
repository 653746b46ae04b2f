import { describe, expect, test } from '@jest/globals';
import { sql } from 'kysely';
import type { TemplateName } from '../../domain/notifications/templates.ts';
import type { Operation } from '../support/contract.ts';
import { createMemoryStorage } from '../support/mail-services.ts';
import { buildRequest, type ResourceIds } from '../support/operations.ts';
import { createKey } from '../support/organizations.ts';
import { query } from '../support/query.ts';
import { createResources, readResourceIds } from '../support/resource-ids.ts';
import { useTestApp } from '../support/resources.ts';
import { addInternalRows, createRichOrganization } from '../support/rich-organization.ts';
import { createTestSession } from '../support/sessions.ts';
import type { Call } from '../support/test-app.ts';

const app = useTestApp();

/** Changes without an audit entry, and why. */
const NOT_AUDITED: [RegExp, string][] = [
  [/^drafts\.(create|update|delete|send)$/, 'work with mail, which the message and its events record'],
  [/^messages\.(?!dismissInjection$)/, 'work with mail, which the message and its events record'],
  [/^threads\.delete$/, 'works with mail'],
  [/^attachments\.upload$/, 'works with mail'],
  [/^webhookEndpoints\.test$/, 'changes nothing; the delivery records it'],
  [/^webhookDeliveries\.(retry|cancel)$/, 'the delivery records it with its attempts'],
  [/^policies\.preview$/, 'changes nothing'],
  [/^billing\./, 'switched off here; test/billing checks what it audits'],
  [/^sso\.refresh$/, 'needs an identity provider; test/sso/replacement.api.test.ts finds its entry'],
  [/^sso\.test$/, 'starts a sign-in that changes nothing; GET /org/sso/{id}/attempts records it'],
  [/^domains\.verify$/, 'looks up the records, and changes nothing that the caller chooses'],
];
/** Reads that change something. */
const CHANGING_READS = /^exports\.start/;

/**
 * The email that a change of an organization causes, by its action in the audit log, or why it causes none. A change that
 * weakens the organization, or decides who controls it, must not go unnoticed by its owners.
 */
const EMAILS: Record<string, { email: TemplateName } | { none: string }> = {
  'policies.updated': { email: 'policies-weakened' },
  'sso_configuration.activated': { email: 'sso-activated' },
  'sso_configuration.disabled': { email: 'sso-stopped' },
  'sso_configuration.deleted': { email: 'sso-stopped' },
  'member.role_changed': { email: 'owner-added' },
  'member.removed': { email: 'owner-removed' },
  'organization.ownership_transferred': { email: 'ownership-transferred' },
  'organization.deleted': { email: 'organization-deleted' },
  'invitation.created': { email: 'invitation' },
  ...Object.fromEntries(
    [
      ['api_key.created', 'permissions are at most those of its maker; the list of keys shows it'],
      ['api_key.updated', 'permissions are at most those of the caller'],
      ['connection.ended', 'takes access away'],
      ['api_key.rotated', 'takes access away'],
      ['api_key.revoked', 'takes access away'],
      ['approved_recipient.removed', 'requires approval again'],
      ['domain.created', 'does nothing before DNS proves it'],
      ['domain.deleted', 'takes nothing that inboxes need: a domain with inboxes stays'],
      ['domain.dkim_rotated', 'routine, and both keys are valid meanwhile'],
      ['domain.updated', 'mail that was refused before arrives in an inbox of the organization'],
      ['draft.approved', 'everyday work of approvers'],
      ['draft.rejected', 'everyday work of approvers'],
      ['environment.created', 'gives access to nothing'],
      ['environment.updated', 'gives access to nothing'],
      ['environment.deleted', 'only an empty one'],
      ['export.created', 'the email export-ready follows when there is something to download'],
      ['export.removed', 'takes away a copy'],
      ['inbox.created', 'everyday work of agents'],
      ['inbox.updated', 'everyday work of agents'],
      ['inbox.deleted', 'everyday work of agents'],
      ['inbox.sending_paused', 'everyday work of agents'],
      ['inbox.sending_resumed', 'everyday work of agents'],
      ['inbox.credentials_rotated', 'takes access away'],
      ['invitation.revoked', 'takes access away'],
      ['limits.updated', 'the emails about usage follow'],
      ['list_entry.created', 'everyday work of agents'],
      ['list_entry.removed', 'everyday work of agents'],
      ['message.injection_dismissed', 'everyday work of approvers'],
      ['organization.updated', 'its name and slug'],
      ['sso_configuration.created', 'a draft lets no one in'],
      ['sso_configuration.updated', 'a draft lets no one in; its activation is announced'],
      ['sso_setup_link.created', 'configures a draft, whose passed test is announced'],
      ['sso_setup_link.revoked', 'takes access away'],
      ['suppression.created', 'sends less'],
      ['suppression.removed', 'everyday work of agents'],
      ['webhook_endpoint.created', 'receives what its maker may read'],
      ['webhook_endpoint.updated', 'receives what the caller may read'],
      ['webhook_endpoint.deleted', 'everyday work of agents'],
      ['webhook_endpoint.secret_rotated', 'the receiver notices'],
      ['webhook_endpoint.replayed', 'everyday work of agents'],
      ['webhook_endpoint.deliveries_canceled', 'everyday work of agents'],
      ['retention_policy.updated', 'emails follow before anything is deleted'],
      ['retention_policy.postponed', 'keeps more'],
      ['upgrade_request.created', 'changes nothing; the decision is mailed'],
    ].map(([action, none]) => [action, { none }]),
  ),
};

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
  const [facts] = await query<{ ownerId: string; environmentId: string }>(
    app.worker,
    sql`select m.user_id as "ownerId", e.id as "environmentId"
    from members m join environments e on e.org_id = m.org_id and e.kind = 'production'
    where m.org_id = ${organizationId} and m.role = 'owner'`,
  );
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
  await query(
    app.worker,
    sql`update organization_policies set require_send_approval = 'all' where org_id = ${organizationId} returning org_id`,
  );
  const { token } = await createKey(app.worker, { organizationId });
  const submitted = await app.call(`/drafts/${ids.draft}/send`, { method: 'POST', token });
  return { body: { version: submitted.json().version } };
};

async function makeOwner({ organizationId, ids }: World): Promise<{ ids?: ResourceIds }> {
  await query(
    app.worker,
    sql`update members set role = 'owner' where org_id = ${organizationId} and user_id = ${ids.member} returning user_id`,
  );
  return {};
}

async function setSsoStatus(organizationId: string, ids: ResourceIds, status: string): Promise<void> {
  await query(
    app.worker,
    sql`update sso_configurations set status = ${status}, activated_at = now(), replaces_id = null
    where org_id = ${organizationId} and id = ${ids.ssoConfiguration} returning id`,
  );
}

/** What an operation needs beyond a world and its body in BODIES, to succeed and change something. */
const ARRANGEMENTS: Record<string, Arrange> = {
  'organization.deleteEnvironment': async ({ token }) => {
    const body = { name: 'Staging' };
    const created = await app.call('/org/environments', { method: 'POST', token, body });
    return { ids: { environment: created.json().id } };
  },
  'policies.update': async ({ token }) => {
    await app.call('/org/policies', { method: 'PATCH', token, body: { session_max_age_hours: 24 } });
    return { body: { session_max_age_hours: 48 } };
  },
  'members.update': async () => ({ body: { role: 'owner' } }),
  'members.remove': async (world) => makeOwner(world),
  'members.offboard': async (world) => makeOwner(world),
  'sso.update': async ({ organizationId, ids }) => {
    await setSsoStatus(organizationId, ids, 'active');
    return { body: { disabled: true } };
  },
  'sso.delete': async ({ organizationId, ids }) => {
    await setSsoStatus(organizationId, ids, 'disabled');
    return {};
  },
  'organization.delete': async ({ token }) => ({
    body: { name: (await app.call('/org', { token })).json().name },
  }),
  'organization.transferOwnership': async ({ ids }) => ({ body: { user_id: ids.member } }),
  'domains.delete': async ({ organizationId }) => {
    await query(
      app.worker,
      sql`update inboxes set deleted_at = now() where org_id = ${organizationId} returning id`,
    );
    return {};
  },
  'drafts.approve': submitDraft,
  'drafts.reject': submitDraft,
  'messages.dismissInjection': async ({ ids }) => {
    await query(
      app.worker,
      sql`update messages set injection = '{"level": "alarm", "reasons": []}' where id = ${ids.message} returning id`,
    );
    return {};
  },
  'sso.activate': async ({ organizationId, ids }) => {
    await query(
      app.worker,
      sql`update sso_configurations set status = 'tested', tested_at = now(), domains = array(
        select domain_name from domains where org_id = ${organizationId} and verification_status = 'verified')
      where id = ${ids.ssoConfiguration} returning id`,
    );
    return {};
  },
  'inboxes.resume': async ({ ids }) => {
    await query(app.worker, sql`update inboxes set send_paused = true where id = ${ids.inbox} returning id`);
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
  const emailsBefore = new Set((await readEmails(world.organizationId)).map((email) => email.id));
  const request: Call = { ...call, token: world.token, ...(body === undefined ? {} : { body }) };
  const response = await app.call(path, request);
  const entries = await query<Entry>(
    app.worker,
    sql`select action, credential_id as "credentialId", ip, details from audit_entries
    where org_id = ${world.organizationId} and request_id = ${String(response.headers['x-request-id'])}`,
  );
  const emails = (await readEmails(world.organizationId)).filter((email) => !emailsBefore.has(email.id));
  return { response, entries, templates: emails.map(({ template }) => template) };
}

const readEmails = (organizationId: string) =>
  query<{ id: string; template: string }>(
    app.worker,
    sql`select id, template from notifications where org_id = ${organizationId}`,
  );

/** Secrets that a response shows once. */
const secretsOf = (body: string): string[] =>
  [...body.matchAll(/"(?:token|secret|password|key)":\s*"([^"]{8,})"/g)].map(([, secret = '']) => secret);

describe('the audit log', () => {
  test('has an entry for every change, and owners an email where it weakens the organization, unless a reason is documented', async () => {
    const audited = changes().filter(isAudited);
    expect(audited.length).toBeGreaterThan(35);
    const problems: string[] = [];
    const seen = new Set<string>();
    const queue = [...audited];
    const work = async () => {
      for (let operation = queue.shift(); operation; operation = queue.shift()) {
        const { operationId } = operation;
        const { response, entries, templates } = await perform(operation);
        const { statusCode, body } = response;
        if (statusCode >= 300) problems.push(`${operationId} failed: ${body}`);
        else if (entries.length === 0) problems.push(`${operationId} wrote no entry (recordAudit)`);
        for (const { action, credentialId, ip, details } of entries) {
          if (!/^[a-z_]+\.[a-z_]+$/.test(action)) problems.push(`${operationId}: ${action}`);
          if (!credentialId.startsWith('ses_') || ip === null)
            problems.push(`${operationId} does not say with which credential and from where`);
          seen.add(action);
          const expected = EMAILS[action];
          if (!expected) problems.push(`${operationId}: ${action} is not in EMAILS`);
          else if ('email' in expected && !templates.includes(expected.email))
            problems.push(`${operationId}: ${action} sends no email ${expected.email}`);
          if (secretsOf(body).some((secret) => JSON.stringify(details).includes(secret)))
            problems.push(`${operationId} shows a secret`);
        }
      }
    };
    await Promise.all([1, 2, 3].map(work));
    // The operation that writes it disables a configuration here, which weighs more.
    for (const action of Object.keys(EMAILS))
      if (!seen.has(action) && action !== 'sso_configuration.updated')
        problems.push(`${action} of EMAILS does not occur`);
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
