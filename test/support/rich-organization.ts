import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import { buildSampleData } from '../../domain/webhooks/sample-data.ts';
import { type IdKind, newId } from '../../platform/ids.ts';
import type { Storage } from '../../platform/storage.ts';
import { testStack } from './stack.ts';

export interface RichOrganization {
  organizationId: string;
  /** Appears in each of its addresses, names and files, and nowhere else. */
  marker: string;
  keyId: string;
  ownerEmail: string;
  messageIds: string[];
  /** Bytes by storage key. */
  objects: Map<string, Buffer>;
}

export interface RichOrganizationOptions {
  /** Number of messages in each of its two inboxes. */
  messages?: number;
  /** Attachments of the first message. */
  attachments?: { filename: string; bytes: Buffer }[];
}

/** Yesterday, so that no sweep finds a row too old, on whatever day the tests run. */
const DAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 'YYYY-MM-DD'.length);
const HOUR = `${DAY}T10:00:00.000Z`;
const NEXT_HOUR = `${DAY}T11:00:00.000Z`;
const NAMES = ['Übersicht 令和 📎.pdf', '../../etc/passwd', 'CON', ''];

/** Runs `work` as the owner of the schema, who bypasses all policies. */
export async function asSchemaOwner<T>(work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: testStack().postgres.ownerUrl });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** Creates an organization with rows in every exported table. */
export async function createRichOrganization(
  storage: Pick<Storage, 'putBytes'>,
  { messages = 3, attachments }: RichOrganizationOptions = {},
): Promise<RichOrganization> {
  const marker = `m${randomBytes(6).toString('hex')}`;
  const organizationId = newId('organization');
  const objects = new Map<string, Buffer>();
  const put = async (key: string, bytes: Buffer) => {
    await storage.putBytes(key, bytes, 'application/octet-stream');
    objects.set(key, bytes);
    return key;
  };
  const files =
    attachments ?? NAMES.map((filename) => ({ filename, bytes: Buffer.from(`${marker} ${filename}`) }));
  const ids = <Kind extends IdKind>(kind: Kind) => newId(kind);
  const [ownerId, productionId, sandboxId, domainId, endpointId, keyId] = [
    ids('user'),
    ids('environment'),
    ids('environment'),
    ids('domain'),
    ids('webhookEndpoint'),
    ids('apiKey'),
  ] as [string, string, string, string, string, string];
  const messageIds: string[] = [];
  const ownerEmail = `owner@${marker}.test`;
  const now = `${DAY}T10:20:30.120Z`;
  const stamps = { created_at: now, updated_at: now };
  const org = { org_id: organizationId };

  await asSchemaOwner(async (client) => {
    const insert = (table: string, row: Record<string, unknown>) => {
      const columns = Object.keys(row).map((name) => `"${name}"`);
      const values = columns.map((_, index) => `$${index + 1}`);
      return client.query(`insert into "${table}" (${columns}) values (${values})`, Object.values(row));
    };
    const json = (value: unknown) => JSON.stringify(value);
    await insert('organizations', { id: organizationId, name: `Org ${marker}`, slug: marker, ...stamps });
    for (const [id, kind] of [
      [productionId, 'production'],
      [sandboxId, 'sandbox'],
    ])
      await insert('environments', { id, ...org, name: kind, slug: kind, kind, ...stamps });
    await insert('users', {
      id: ownerId,
      email: ownerEmail,
      name: `Ada ${marker}`,
      password_hash: SECRET,
      ...stamps,
    });
    await insert('members', { ...org, user_id: ownerId, role: 'owner', created_at: now });
    const viewerId = newId('user');
    await insert('users', { id: viewerId, email: `viewer@${marker}.test`, name: `Bob ${marker}`, ...stamps });
    await insert('members', { ...org, user_id: viewerId, role: 'viewer', created_at: now });
    await insert('invitations', {
      ...org,
      id: ids('invitation'),
      email: `invited@${marker}.test`,
      role: 'viewer',
      token_hash: randomBytes(32),
      invited_by_user_id: ownerId,
      expires_at: '2190-01-01T00:00:00.000Z',
      created_at: now,
    });
    // Its alarms, which the sweep would delete if they had ended, hold nothing.
    const policies = { after_alarm: 'none', session_max_age_hours: 720 };
    await insert('organization_policies', { ...org, ...policies, updated_at: now });
    await insert('audit_entries', {
      ...org,
      id: ids('auditEntry'),
      action: 'api_key.created',
      actor_kind: 'user',
      actor_id: ownerId,
      credential_id: ids('session'),
      resource_type: 'api_key',
      resource_id: keyId,
      reason: marker,
      details: json({ name: marker }),
      ip: '192.0.2.1',
      request_id: ids('request'),
      created_at: now,
    });
    await insert('retention_policies', {
      ...org,
      retention_days: 365,
      applied_days: 365,
      applied_since: now,
      steps: '[]',
      changed_at: now,
      created_at: now,
    });
    await insert('custom_limits', { ...org, counter: 'messages_sent', amount: 1_000, updated_at: now });
    await insert('api_keys', {
      id: keyId,
      ...org,
      name: `Key ${marker}`,
      token_hash: randomBytes(32),
      last_four: 'abcd',
      permissions: ['export:create', 'keys:manage'],
      created_at: now,
    });
    const connectionId = ids('connection');
    await insert('connections', {
      id: connectionId,
      ...org,
      user_id: ownerId,
      client_id: `https://${marker}.test/client.json`,
      client_name: `Host ${marker}`,
      redirect_to: `https://${marker}.test`,
      permissions: ['messages:read'],
      method: 'password',
      factors: ['totp'],
      authenticated_at: now,
      expires_at: '2190-01-01T00:00:00.000Z',
      created_at: now,
    });
    // Without a token that works, the sweep of another test would end the connection.
    await insert('connection_tokens', {
      token_hash: randomBytes(32),
      kind: 'refresh_token',
      connection_id: connectionId,
      payload: '{}',
      expires_at: '2190-01-01T00:00:00.000Z',
      created_at: now,
    });
    await insert('domains', {
      id: domainId,
      ...org,
      domain_name: `${marker}.test`,
      ownership_token: `token-${marker}`,
      verification_status: 'verified',
      observed: json({ spf: { status: 'valid', found: marker } }),
      generation_started_at: now,
      verified_at: now,
      ...stamps,
    });
    await insert('dkim_keys', {
      domain_id: domainId,
      selector: 's1',
      ...org,
      state: 'active',
      public_key: `MII${marker}`,
      private_key: Buffer.from(SECRET),
      created_at: now,
    });
    await insert('webhook_endpoints', {
      id: endpointId,
      ...org,
      env_id: productionId,
      url: `https://${marker}.test/hook`,
      events: ['message.received'],
      secret: Buffer.from(SECRET),
      description: null,
      ...stamps,
    });
    await insert('webhook_bulk_jobs', {
      id: ids('bulkJob'),
      ...org,
      env_id: productionId,
      endpoint_id: endpointId,
      kind: 'replay',
      status: 'completed',
      until: now,
      since: now,
      event_types: ['message.received'],
      created_at: now,
    });
    await insert('notifications', {
      id: ids('notification'),
      ...org,
      user_id: ownerId,
      email: ownerEmail,
      template: 'export-ready',
      params: json({ exportId: marker }),
      dedupe_key: marker,
      status: 'sent',
      created_at: now,
    });
    await insert('suppressions', {
      id: ids('suppression'),
      ...org,
      scope_id: organizationId,
      email: `gone@${marker}.test`,
      origin: 'manual',
      created_at: now,
    });
    await insert('list_entries', {
      id: ids('listEntry'),
      ...org,
      direction: 'send',
      effect: 'block',
      entry: `${marker}.example`,
      created_at: now,
    });
    await insert('usage_counters', {
      ...org,
      counter: 'messages_sent',
      period_start: `${DAY.slice(0, 'YYYY-MM'.length)}-01T00:00:00.000Z`,
      amount: 41,
    });
    await insert('usage_hours', { ...org, counter: 'messages_sent', hour: HOUR, amount: 40 });
    await insert('usage_events', {
      id: ids('usageEvent'),
      ...org,
      kind: 'own_limit_changed',
      counter: 'messages_sent',
      actor: keyId,
      data: json({ to: { limit: 1_000 } }),
      at: now,
    });
    // Deltas of an hour that already has a row, and of one that has none.
    for (const at of [now, NEXT_HOUR])
      await insert('usage_deltas', { ...org, counter: 'messages_sent', at, amount: 1 });
    // Not in the order of their ids, so that messages and environments are ordered differently.
    for (const environmentId of [sandboxId, productionId]) {
      const inboxId = ids('inbox');
      const email = `${environmentId.slice(-6)}@${marker}.test`;
      const within = { ...org, env_id: environmentId };
      await insert('inboxes', {
        id: inboxId,
        ...within,
        email,
        username: environmentId.slice(-6),
        domain: `${marker}.test`,
        domain_id: domainId,
        display_name: `Größe ${marker}`,
        ...stamps,
      });
      const counted = { ...within, hour: HOUR, sent: 3, delivered: 2, attempted: 3 };
      for (const subject of ['', inboxId, `${marker}.test`])
        await insert('metric_hours', { ...counted, subject });
      for (const hour of [HOUR, NEXT_HOUR])
        await insert('metric_deltas', { ...within, inbox_id: inboxId, hour, bounced: 1 });
      const draftId = ids('draft');
      await insert('drafts', {
        id: draftId,
        ...within,
        inbox_id: inboxId,
        subject: `Draft ${marker}`,
        text_body: 'Hello\n',
        to: json([{ email: `to@${marker}.test` }]),
        cc: '[]',
        bcc: '[]',
        reply_to: '[]',
        headers: '{}',
        ...stamps,
      });
      const attach = async (owner: object, position: number, filename: string, bytes: Buffer) => {
        const id = ids('attachment');
        await insert('attachments', {
          id,
          ...within,
          inbox_id: inboxId,
          ...owner,
          position,
          filename,
          content_type: 'text/plain',
          size_bytes: bytes.length,
          sha256: createHash('sha256').update(bytes).digest(),
          storage_key: await put(`attachments/${id}`, bytes),
          disposition: 'attachment',
          created_at: now,
        });
      };
      await attach({ draft_id: draftId }, 0, `draft ${marker}.txt`, Buffer.from(`draft ${marker}`));
      let threadId = '';
      for (let number = 0; number < messages; number += 1) {
        const id = ids('message');
        messageIds.push(id);
        const inbound = number % 2 === 0;
        if (number % 2 === 0) {
          threadId = ids('thread');
          await insert('threads', {
            id: threadId,
            ...within,
            inbox_id: inboxId,
            subject: `Re: ${marker}`,
            base_subject: marker,
            participants: [`p@${marker}.test`],
            message_count: 2,
            last_message_id: id,
            last_message_at: now,
            ...stamps,
          });
        }
        const raw = Buffer.from(
          `From: a@${marker}.test\r\nSubject: ${number}\r\n\r\n${marker} \u00e9\r\n`,
          'latin1',
        );
        await insert('messages', {
          id,
          ...within,
          inbox_id: inboxId,
          thread_id: threadId,
          status: inbound ? 'received' : 'sent',
          direction: inbound ? 'inbound' : 'outbound',
          from_email: `a@${marker}.test`,
          from_name: inbound ? `Zoë "${marker}"` : null,
          to: json([{ email, name: null }]),
          cc: '[]',
          bcc: '[]',
          reply_to: '[]',
          subject: `Grüße ${number}\u2028${marker}`,
          text_body: `Line\n"${marker}" \\ 令和`,
          headers: json({ 'x-tag': marker }),
          labels: ['inbox', `tag "${marker}"`],
          authentication: inbound ? json({ spf: 'pass', dkim: 'pass', dmarc: 'pass' }) : null,
          reference_ids: [`${number}@${marker}.test`],
          has_attachments: number === 0,
          size_bytes: raw.length,
          raw_key: await put(`raw/${id}`, raw),
          rfc_message_id: `${id}@${marker}.test`,
          ...stamps,
          received_at: now,
        });
        if (!inbound) {
          await insert('message_recipients', {
            message_id: id,
            position: 0,
            ...org,
            field: 'to',
            email: `to@${marker}.test`,
            status: 'sent',
            updated_at: now,
          });
          await insert('send_attempts', {
            message_id: id,
            position: 0,
            number: 1,
            ...org,
            state: 'accepted',
            response: `250 ${marker}`,
            started_at: now,
            finished_at: now,
          });
        }
        if (number === 0)
          for (const [position, { filename, bytes }] of files.entries())
            await attach({ message_id: id }, position, filename, bytes);
        const eventId = ids('event');
        await insert('events', {
          id: eventId,
          ...within,
          inbox_id: inboxId,
          type: 'message.received',
          created_at: now,
          data: json({
            ...buildSampleData('message.received', { inboxId, time: new Date(now) }),
            message_id: id,
            extracted_text: marker,
          }),
        });
        const deliveryId = ids('webhookDelivery');
        await insert('webhook_deliveries', {
          id: deliveryId,
          ...org,
          endpoint_id: endpointId,
          event_id: eventId,
          status: 'delivered',
          attempts: 1,
          created_at: now,
          completed_at: now,
        });
        await insert('webhook_delivery_attempts', {
          delivery_id: deliveryId,
          number: 1,
          ...org,
          started_at: now,
          status_code: 200,
          response_body: marker,
        });
      }
    }
  });
  return { organizationId, marker, keyId, ownerEmail, messageIds, objects };
}

/**
 * Adds a row to each table that exports omit, except those filled by triggers. None has expired: sweeps of other tests
 * delete expired rows at any time.
 */
export async function addInternalRows(organizationId: string): Promise<void> {
  const statements = [
    `insert into address_claims (email, org_id, inbox_id) select email, org_id, id from inboxes where org_id = $1`,
    `insert into released_slugs (slug, org_id, released_at) select 'former-' || id, id, now() from organizations where id = $1`,
    `insert into impersonations (id, org_id, staff_id, staff_session_id, token_hash, allows_write, reason, ip, request_id,
       expires_at, ended_at, reported_at, created_at)
     select 'imp' || substr(id, 4), id, 'usr_x', 'ses_x', sha256(id::bytea), false, 'x', '192.0.2.1', 'req_x',
       now() + interval '1 day', now(), now(), now() from organizations where id = $1`,
    `insert into impersonated_operations (impersonation_id, operation, resource_id, org_id, is_change, calls, created_at)
     select id, 'messages.get', 'x', org_id, false, 1, now() from impersonations where org_id = $1`,
    `insert into inbox_credentials (inbox_id, org_id, password_hash, rotated_at)
     select id, org_id, '\\x00', now() from inboxes where org_id = $1`,
    `insert into inbound_receipts (id, org_id, env_id, inbox_id, kind, message_id, raw_key, size_bytes, sha256, mail_from,
       rcpt_to, client_ip, status, received_at, processed_at)
     select 'rcp' || substr(id, 4), org_id, env_id, inbox_id, 'mail', id, raw_key, size_bytes, '\\x00', from_email,
       from_email, '192.0.2.1', 'processed', now(), now() from messages where org_id = $1`,
    `insert into thread_message_ids (inbox_id, id_hash, org_id, thread_id, source)
     select inbox_id, md5(rfc_message_id), org_id, thread_id, 'held' from messages where org_id = $1`,
    `insert into shared_domain_caps (org_id, day, recipients, cap)
     select id, now()::date, 1, 100 from organizations where id = $1`,
    `insert into approval_digests (org_id, sent_at) select id, now() from organizations where id = $1`,
    `insert into approved_recipients (id, org_id, env_id, inbox_id, email, approved_by, expires_at, created_at)
     select 'apr' || substr(id, 4), org_id, env_id, id, 'approved@example.test', 'usr_test', now() + interval '1 day', now()
     from inboxes where org_id = $1`,
    `insert into refusals (id, org_id, direction, stage, reason, response_code, response, count, hour, fingerprint, first_at, last_at)
     select 'ref' || substr(id, 4), id, 'inbound', 'rcpt', 'unknown_mailbox', 550, '', 1, now(), '\\x00', now(), now()
     from organizations where id = $1`,
    `insert into injection_alarms (message_id, org_id, env_id, inbox_id, thread_id, addresses, ends_at)
     select id, org_id, env_id, inbox_id, thread_id, array[from_email], now() + interval '1 day' from messages where org_id = $1`,
    `insert into inbox_daily_sends (inbox_id, org_id, day, messages)
     select id, org_id, now()::date, 1 from inboxes where org_id = $1`,
    `insert into reputation_outcomes (inbox_id, kind, message_id, position, org_id, created_at)
     select inbox_id, 'sent', id, 0, org_id, now() from messages where org_id = $1`,
    `insert into webhook_slots (endpoint_id, slot, org_id, leased_until)
     select id, 0, org_id, now() from webhook_endpoints where org_id = $1`,
    `insert into exports (id, org_id, requested_by, status, storage_key, expires_at, created_at, updated_at)
     select 'exp' || substr(id, 4), id, 'test', 'failed', 'exports/' || id, null, now(), now()
     from organizations where id = $1`,
    `insert into idempotency_keys (id, org_id, request_hash, status, content_type, body, created_at)
     select sha256(id::bytea), id, '\\x00', 200, 'application/json', '\\x00', now() from organizations where id = $1`,
    `insert into api_requests (id, org_id, env_id, method, path, status, credential_kind, credential_id, duration_ms)
     select 'req' || substr(id, 4), org_id, id, 'GET', '/api/v1/inboxes', 200, 'api_key', 'key_test', 1 from environments where org_id = $1`,
    `insert into limit_overrides (org_id, resource, amount, kind, reason, created_by, created_at)
     values ($1, 'api_calls', 1000000, 'soft', 'Test', 'test', now())`,
    `insert into suspensions (id, org_id, target_type, target_id, reason, note, actor_kind, actor_id, created_at, lifted_at,
       lifted_note, lifted_by_kind, lifted_by_id, changed_at, settled_at)
     select 'sus' || substr(id, 4), id, 'organization', id, 'support', 'Test', 'system', id, now(), now(), 'Test', 'system', id,
       now(), now() from organizations where id = $1`,
    `insert into upgrade_requests (id, org_id, tier, current_tier, note, status, requested_by_kind, requested_by_id, created_at,
       decided_by, decided_at, decision_note)
     select 'upg' || substr(id, 4), id, 'business', 'free', 'Test', 'rejected', 'user', id, now(), id, now(), 'Test'
     from organizations where id = $1`,
    `insert into billing_customers (org_id, customer_id, created_at, updated_at)
     select id, 'cus_' || id, now(), now() from organizations where id = $1`,
    `insert into billing_subscriptions (id, org_id, created_at) select 'sub_' || id, id, now() from organizations where id = $1`,
    `insert into billing_meters (subscription_id, counter, org_id, customer_id, price_id, meter_id, event_name, customer_field,
       value_field, settled_until)
     select 'sub_' || id, 'messages_sent', id, 'cus_' || id, 'price_1', 'mtr_1', 'messages_sent', 'stripe_customer_id', 'value',
       now() from organizations where id = $1`,
    `insert into meter_reports (id, org_id, subscription_id, counter, window_start, units, created_at, reported_at)
     select id || '/messages_sent/2026-11-01T00', id, 'sub_' || id, 'messages_sent', now(), 1, now(), now()
     from organizations where id = $1`,
    `insert into stripe_events (id, org_id, type, created_at, received_at)
     select 'evt_' || id, id, 'invoice.paid', now(), now() from organizations where id = $1`,
    `insert into payment_graces (id, org_id, subscription_id, generation, status, started_at, suspend_at, closed_at)
     select 'grc' || substr(id, 4), id, 'sub_' || id, 1, 'recovered', now(), now(), now() from organizations where id = $1`,
    `insert into usage_alerts (org_id, counter, threshold, period_start, created_at)
     values ($1, 'api_calls', 80, now(), now())`,
    `insert into sso_configurations (id, org_id, type, name, domains, default_role, created_at, updated_at)
     select 'sso' || substr(id, 4), id, 'oidc', 'Test', '{}', 'viewer', now(), now() from organizations where id = $1`,
    `insert into sso_transactions (token_hash, org_id, configuration_id, configuration_version, purpose, browser_hash,
       redirect_to, expires_at, created_at)
     select sha256(id::bytea), org_id, id, 1, 'login', '\\x00', '/account', now() + interval '1 day', now()
     from sso_configurations where org_id = $1`,
    `insert into sso_providers (id, org_id, type, issuer, certificates, created_at)
     select 'ssp' || substr(id, 4), org_id, 'oidc', 'x', '{}', now() from sso_configurations where org_id = $1`,
    `insert into sso_identities (provider_id, subject, org_id, user_id, email, last_login_at, created_at)
     select p.id, 'x', p.org_id, m.user_id, 'x', now(), now()
     from sso_providers p join members m on m.org_id = p.org_id where p.org_id = $1 limit 1`,
    `insert into sso_assertions (configuration_id, assertion_hash, org_id, expires_at)
     select id, '\\x00', org_id, now() + interval '1 day' from sso_configurations where org_id = $1`,
    `insert into sso_attempts (id, org_id, configuration_id, purpose, succeeded, checks, created_at)
     select 'sat' || substr(id, 4), org_id, id, 'login', true, '[]', now()
     from sso_configurations where org_id = $1`,
    `insert into sso_setup_links (id, org_id, token_hash, configuration_id, expires_at, created_at)
     select 'ssl' || substr(id, 4), org_id, sha256(id::bytea), id, now() + interval '7 days', now()
     from sso_configurations where org_id = $1`,
    // Not due while tests of the sweeps run.
    `insert into unclaimed_objects (storage_key, org_id, due_at) values ('none/' || $1::text, $1, 'infinity')`,
    `insert into outbox (org_id, command, priority, available_at, created_at) values ($1, '{}', 3, 'infinity', now())`,
  ];
  await asSchemaOwner(async (client) => {
    for (const statement of statements) await client.query(statement, [organizationId]);
  });
}

/** The value of every column that no export may contain. */
export const SECRET = 'A-SECRET-THAT-IS-NEVER-EXPORTED';
