import { expect, test } from '@jest/globals';
import { useTestApp } from '../support/resources.ts';

const app = useTestApp();

/** The operations of the interface specification, by prefix: method, path, and the status of success. */
const SPECIFIED: Record<string, string> = {
  '/api/v1': `
    POST /inboxes/{}/drafts 201
    PATCH /drafts/{} 200
    POST /drafts/{}/send 201
    POST /inboxes 201
    POST /inboxes 200
    POST /inboxes/{}/messages 201
    GET /inboxes/{}/messages 200
    GET /messages/{} 200
    POST /messages/{}/reply 201
    POST /messages/{}/forward 201
    POST /messages/{}/labels 200
    GET /attachments/{} 200
    GET /inboxes/{}/threads 200
    GET /threads/{} 200
    GET /threads 200
    POST /webhook-endpoints 201
    POST /webhooks/endpoints 201
    DELETE /webhooks/endpoints/{} 204
    POST /domains 201
    POST /domains 200
    GET /metrics/activity 200
    GET /metrics/deliverability 200
    GET /metrics/summary 200
    GET /metrics 200
    GET /user/me 200
    PATCH /user/me 200
    DELETE /user/me 202
    POST /user/me/change-password 204
    POST /user/me/change-email 202
    GET /user/me/sessions 200
    DELETE /user/me/sessions/{} 204
    POST /user/me/sessions/revoke-all 200
    GET /user/me/organizations 200
    GET /user/me/oauth-providers 200
    DELETE /user/me/oauth-providers/{} 204
    POST /user/me/recover 200
    POST /org/sso 201
    GET /org/sso 200
    POST /org/sso/{}/test 200
    POST /org/sso/{}/activate 200
    PATCH /org/sso/{} 200
    DELETE /org/sso/{} 204
    GET /auth/sso/{} 200
    POST /auth/sso/oidc/callback 200
    POST /auth/sso/saml/callback 200
    GET /auth/sso/saml/metadata/{} 200
    GET /auth/mfa/status 200
    POST /auth/mfa/totp/setup 200
    POST /auth/mfa/totp/verify 200
    POST /auth/mfa/webauthn/register-options 200
    POST /auth/mfa/webauthn/register 201
    POST /auth/mfa/webauthn/auth-options 200
    DELETE /auth/mfa/{} 204
    POST /auth/mfa/recovery-codes/regenerate 200
    POST /org/invitations 201
    GET /org/invitations 200
    POST /org/invitations/{}/revoke 200
    GET /org/policies 200
    PATCH /org/policies 200`,
  '': `
    POST /billing/checkout 200
    POST /billing/portal 200
    GET /billing/subscription 200
    POST /billing/subscription/change-plan 200
    POST /billing/subscription/cancel 200
    PUT /organizations/{}/retention-policy 200
    GET /organizations/{}/export 200`,
  '/api/v1/admin': `
    POST /orgs/{}/suspend 200
    POST /orgs/{}/reinstate 200
    POST /orgs/{}/environments/{}/suspend 200
    POST /orgs/{}/environments/{}/reinstate 200
    POST /orgs/{}/inboxes/{}/suspend 200
    POST /orgs/{}/inboxes/{}/reinstate 200
    POST /bulk/suspend 200
    POST /bulk/reinstate 200
    GET /orgs 200
    GET /orgs/search 200
    GET /orgs/top 200
    GET /orgs/{} 200
    PATCH /orgs/{}/tier 200
    POST /orgs/{}/limit-override 200
    GET /upgrade-requests 200
    POST /upgrade-requests/{}/approve 200
    POST /upgrade-requests/{}/reject 200
    POST /orgs/{}/reassign-owner 200
    GET /usage/{} 200
    GET /usage/{}/events 200
    POST /orgs/{}/impersonate 201
    GET /orgs/{}/impersonation-sessions 200
    DELETE /impersonation-sessions/{} 204`,
};

/** The fields of responses that the specification names. */
const SPECIFIED_FIELDS: Record<string, string> = {
  Draft: `id inbox_id thread_id in_reply_to subject to_addresses cc_addresses bcc_addresses text_body html_body
    attachments_meta`,
  Message: `id thread_id inbox_id direction from_address subject extracted_text text_body html_body has_attachments
    attachment_ids`,
  Inbox: 'id email username display_name client_id send_paused',
  Attachment: 'filename download_url',
  CreatedWebhookEndpoint: 'id url events secret',
  Domain: 'id domain_name verification_status spf_status dkim_status dmarc_status',
  RetentionPolicy: 'retention_days',
};

const withoutNames = (path: string): string => path.replace(/\{[^}]*\}/g, '{}');

test('every operation of the specification exists, with its status of success', () => {
  const found = new Set(
    app.contract.operations.flatMap(({ method, path, responses }) =>
      Object.keys(responses).map((status) => `${method} ${withoutNames(path)} ${status}`),
    ),
  );
  const specified = Object.entries(SPECIFIED).flatMap(([prefix, lines]) =>
    lines
      .trim()
      .split('\n')
      .map((line) => line.trim().replace(' ', ` ${prefix}`)),
  );
  expect(specified.length).toBeGreaterThan(85);
  expect(specified.filter((operation) => !found.has(operation))).toEqual([]);
});

test('every field of the specification exists', () => {
  const { schemas } = app.contract.description.components;
  const fieldsOf = (name: string) =>
    Object.keys((schemas[name] as { properties?: object } | undefined)?.properties ?? {});
  for (const [name, fields] of Object.entries(SPECIFIED_FIELDS))
    expect({ name, fields: fieldsOf(name) }).toEqual({
      name,
      fields: expect.arrayContaining(fields.split(/\s+/)),
    });
});

test('the admin paths without a prefix work, and the description leaves them out', () => {
  for (const url of ['/admin/usage/:orgId', '/admin/usage/:orgId/events'])
    expect({ url, exists: app.app.hasRoute({ method: 'GET', url }) }).toEqual({ url, exists: true });
  const described = Object.keys(app.contract.description.paths);
  expect(described.filter((path) => path.startsWith('/admin/'))).toEqual([]);
});
