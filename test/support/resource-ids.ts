import { BODIES, type ResourceIds } from './operations.ts';
import { asSchemaOwner } from './rich-organization.ts';
import type { TestApp } from './test-app.ts';

/** Ids of one row of each kind, in an environment of an organization that has them; rows of the organization itself too. */
export async function readResourceIds(organizationId: string, environmentId: string): Promise<ResourceIds> {
  const place = `where org_id = $1 and env_id = $2`;
  const whole = `where org_id = $1 and $2 <> ''`;
  const statements: Record<string, string> = {
    inbox: `select id from inboxes ${place}`,
    draft: `select id from drafts ${place}`,
    // Still queued, so that it can be cancelled.
    message: `select id from messages ${place} order by direction desc, id desc`,
    thread: `select id from threads ${place}`,
    attachment: `select id from attachments ${place} and message_id is not null`,
    endpoint: `select id from webhook_endpoints ${place}`,
    job: `select id from webhook_bulk_jobs ${place}`,
    event: `select id from events ${place}`,
    delivery: `select d.id from webhook_deliveries d join events e on e.id = d.event_id
      where d.org_id = $1 and e.env_id = $2`,
    domain: `select id from domains ${whole}`,
    apiKey: `select id from api_keys ${whole}`,
    connection: `select id from connections ${whole}`,
    approvedRecipient: `select id from approved_recipients ${place}`,
    export: `select id from exports ${whole}`,
    suppression: `select email as id from suppressions ${whole}`,
    member: `select user_id as id from members ${whole} and role <> 'owner'`,
    invitation: `select id from invitations ${whole}`,
    ssoSetupLink: `select id from sso_setup_links ${whole}`,
    ssoConfiguration: `select id from sso_configurations ${whole}`,
    listEntry: `select entry as id from list_entries ${whole}`,
  };
  return asSchemaOwner(async (client) => {
    const ids: Record<string, string> = { organization: organizationId, environment: environmentId };
    for (const [resource, statement] of Object.entries(statements)) {
      const { rows } = await client.query(`${statement} limit 1`, [organizationId, environmentId]);
      if (rows[0]) ids[resource] = rows[0].id;
    }
    return ids;
  });
}

/** Creates an inbox, unless one is given, with a queued message, a draft, an endpoint and a pending delivery, through the API. */
export async function createResources(
  app: Pick<TestApp, 'call'>,
  token: string,
  { inboxId, environmentId }: { inboxId?: string; environmentId?: string } = {},
): Promise<ResourceIds> {
  const create = async (path: string, body: unknown = {}) => {
    const headers: Record<string, string> = environmentId === undefined ? {} : { 'x-env-id': environmentId };
    const response = await app.call(path, { method: 'POST', token, headers, body });
    if (response.statusCode >= 300) throw new Error(`POST ${path}: ${response.body}`);
    return response.json<{ id: string; thread_id: string; event_id: string }>();
  };
  const inbox = inboxId ?? (await create('/inboxes')).id;
  const message = await create(`/inboxes/${inbox}/messages`, BODIES['messages.send']);
  const draft = await create(`/inboxes/${inbox}/drafts`, BODIES['messages.send']);
  const endpoint = await create('/webhooks/endpoints', {
    ...(BODIES['webhookEndpoints.create'] as object),
    ...(inboxId === undefined ? {} : { inbox_ids: [inboxId] }),
  });
  const delivery = await create(`/webhooks/endpoints/${endpoint.id}/test`);
  return {
    inbox,
    message: message.id,
    thread: message.thread_id,
    draft: draft.id,
    endpoint: endpoint.id,
    delivery: delivery.id,
    event: delivery.event_id,
  };
}
