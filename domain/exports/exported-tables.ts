import type { IdKind } from '../../platform/ids.ts';
import { EXPORTED_HISTORY } from './exported-history.ts';
import type { ExportedTable, RowSource, Walk } from './exported-table.ts';

const whole = (table: string, idKind: IdKind | null, key = 'id'): Walk => ({
  ...{ table, key, idKind, within: null, weight: null, pageSize: 500 },
});
const itself = (walk: Walk): RowSource => ({
  walk,
  where: `t.${walk.key} in (:keys)`,
  order: `t.${walk.key}`,
});
const of = (walk: Walk, column: string, order: string): RowSource => ({
  ...{ walk, where: `t.${column} in (:keys)`, order },
});

const length = (column: string) => `coalesce(octet_length(${column}), 0)`;
export const MESSAGES: Walk = {
  table: 'messages',
  key: 'id',
  idKind: 'message',
  within: { table: 'environments', column: 'env_id' },
  weight: null,
  pageSize: 500,
};
const MESSAGE_BODIES: Walk = {
  ...MESSAGES,
  // `octet_length` of text that lies out of line reads none of it; JSON is as long as it says, compressed.
  weight: `1000 + ${length('subject')} + ${length('text_body')} + ${length('html_body')} + ${length('extracted_text')} + 4 * pg_column_size(headers)`,
};
export const DRAFTS: Walk = {
  ...whole('drafts', 'draft'),
  weight: `1000 + ${length('text_body')} + ${length('html_body')}`,
};
const EVENTS: Walk = {
  ...MESSAGES,
  ...{ table: 'events', idKind: 'event', weight: '500 + 4 * pg_column_size(data)' },
};
const DELIVERIES: Walk = {
  ...whole('webhook_deliveries', 'webhookDelivery'),
  within: { table: 'webhook_endpoints', column: 'endpoint_id' },
};
const DOMAINS = whole('domains', null);

const RUN_OF_ITS_OWN = 'belongs to the run that moves the row';

/** What an export holds, in the order of its files: whatever a row refers to comes before it. */
export const EXPORTED_TABLES: ExportedTable[] = [
  {
    table: 'organizations',
    columns: ['id', 'name', 'slug', 'status', 'tier', 'created_at', 'updated_at'],
    sources: [itself(whole('organizations', null))],
  },
  {
    table: 'environments',
    columns: ['id', 'name', 'kind', 'status', 'created_at', 'updated_at'],
    sources: [itself(whole('environments', null))],
  },
  {
    table: 'members',
    columns: ['user_id', 'role', 'created_at'],
    derived: {
      email: { sql: '(select u.email from users u where u.id = t.user_id)', of: [] },
      name: { sql: '(select u.name from users u where u.id = t.user_id)', of: [] },
    },
    sources: [itself(whole('members', null, 'user_id'))],
  },
  {
    table: 'retention_policies',
    columns: [
      ...[
        'retention_days',
        'applied_days',
        'applied_since',
        'steps',
        'postponed_until',
        'changed_at',
        'created_at',
      ],
    ],
    withheld: {
      resume_warned_at: RUN_OF_ITS_OWN,
      reminded_at: RUN_OF_ITS_OWN,
      version: RUN_OF_ITS_OWN,
    },
    sources: [itself(whole('retention_policies', null, 'org_id'))],
  },
  {
    table: 'own_limits',
    columns: ['counter', 'amount', 'warning_percent', 'updated_at'],
    sources: [itself(whole('own_limits', null, 'counter'))],
  },
  {
    table: 'domains',
    columns: [
      ...['id', 'domain_name', 'client_id', 'ownership_token', 'verification_status', 'spf_status'],
      ...[
        'dkim_status',
        'dmarc_status',
        'status_reason',
        'observed',
        'verified_at',
        'created_at',
        'updated_at',
      ],
    ],
    withheld: {
      missed_checks: RUN_OF_ITS_OWN,
      episode: RUN_OF_ITS_OWN,
      episode_started_at: RUN_OF_ITS_OWN,
      next_look_at: RUN_OF_ITS_OWN,
      last_looked_at: RUN_OF_ITS_OWN,
      checked_at: RUN_OF_ITS_OWN,
    },
    sources: [itself(DOMAINS)],
  },
  {
    table: 'dkim_keys',
    columns: ['domain_id', 'selector', 'state', 'public_key', 'created_at', 'retired_at'],
    withheld: { private_key: 'a secret' },
    sources: [of(DOMAINS, 'domain_id', 't.domain_id, t.selector')],
  },
  {
    table: 'inboxes',
    columns: [
      ...['id', 'env_id', 'email', 'username', 'domain', 'domain_id', 'display_name', 'client_id', 'status'],
      ...['send_paused', 'send_paused_reason', 'send_resumed_at', 'created_at', 'updated_at', 'deleted_at'],
      ...['purge_requested_at', 'purged_at'],
    ],
    withheld: { checked_at: RUN_OF_ITS_OWN },
    sources: [
      itself({
        ...whole('inboxes', 'inbox'),
        within: { table: 'environments', column: 'env_id' },
      }),
    ],
  },
  {
    table: 'api_keys',
    columns: [
      ...['id', 'env_id', 'inbox_id', 'name', 'last_four', 'permissions', 'expires_at', 'revoked_at'],
      ...['last_used_at', 'created_at'],
    ],
    withheld: { token_hash: 'of a secret' },
    sources: [itself(whole('api_keys', 'apiKey'))],
  },
  {
    table: 'threads',
    columns: [
      ...['id', 'env_id', 'inbox_id', 'subject', 'base_subject', 'preview', 'labels', 'participants'],
      ...['message_count', 'last_message_id', 'last_message_at', 'last_inbound_at', 'last_outbound_at'],
      ...['has_attachments', 'send_paused_until', 'created_at', 'updated_at'],
    ],
    sources: [
      {
        // No index leads through an organization's threads in an order that stays, so each is met with its newest
        // message. Retention deletes the oldest ones meanwhile; met with its first, a thread would be met again.
        walk: { ...MESSAGES, newestFirst: true },
        where: `t.id in (select m.thread_id from messages m where m.id in (:keys)
          and not exists (select from messages o where o.thread_id = m.thread_id and o.id > m.id and o.id < :bound))`,
        order: 't.id',
      },
    ],
  },
  {
    table: 'messages',
    columns: [
      ...['id', 'env_id', 'inbox_id', 'thread_id', 'direction', 'status', 'status_detail', 'to', 'cc', 'bcc'],
      ...['reply_to', 'subject', 'preview', 'text_body', 'html_body', 'extracted_text', 'labels'],
      ...['has_attachments', 'rfc_message_id', 'in_reply_to', 'provider_message_id', 'size_bytes', 'headers'],
      ...['authentication', 'spam', 'automated', 'signals', 'announced', 'parse_error', 'created_at'],
      ...['updated_at', 'queued_at', 'sent_at', 'delivered_at', 'bounced_at', 'complained_at', 'received_at'],
    ],
    derived: {
      from_address: {
        sql: `json_strip_nulls(json_build_object('email', t.from_email, 'name', t.from_name))`,
        of: ['from_email', 'from_name'],
      },
      references: { sql: 't.reference_ids', of: ['reference_ids'] },
      file: {
        sql: `case when t.raw_key is not null then 'messages/' || t.id || '.eml' end`,
        of: ['raw_key'],
      },
    },
    withheld: {
      submitted_key: 'the bytes a mail program handed over, gone once the mail is made of them',
      tracked: RUN_OF_ITS_OWN,
      checked_at: RUN_OF_ITS_OWN,
    },
    sources: [itself(MESSAGE_BODIES)],
  },
  {
    table: 'message_recipients',
    columns: [
      ...['message_id', 'position', 'field', 'email', 'status', 'status_code', 'diagnostic_code', 'sent_at'],
      ...['updated_at'],
    ],
    sources: [of(MESSAGES, 'message_id', 't.message_id, t.position')],
  },
  {
    table: 'send_attempts',
    columns: [
      ...['message_id', 'position', 'number', 'state', 'refused_scope', 'status_code', 'response'],
      ...['provider_message_id', 'reports_delivery', 'simulated', 'started_at', 'finished_at'],
    ],
    withheld: { recorded: RUN_OF_ITS_OWN },
    sources: [of(MESSAGES, 'message_id', 't.message_id, t.position, t.number')],
  },
  {
    table: 'drafts',
    columns: [
      ...['id', 'env_id', 'inbox_id', 'thread_id', 'in_reply_to', 'subject', 'to', 'cc', 'bcc', 'reply_to'],
      ...['text_body', 'html_body', 'labels', 'headers', 'send_at', 'send_status', 'send_error', 'version'],
      ...['created_at', 'updated_at'],
    ],
    withheld: { plan: RUN_OF_ITS_OWN, checked_at: RUN_OF_ITS_OWN },
    sources: [itself(DRAFTS)],
  },
  {
    table: 'attachments',
    columns: [
      ...['id', 'env_id', 'inbox_id', 'message_id', 'draft_id', 'position', 'filename', 'content_type'],
      ...['size_bytes', 'sha256', 'content_id', 'disposition', 'created_at'],
    ],
    withheld: { storage_key: 'the file is in the archive, under `file`' },
    sources: [
      of(MESSAGES, 'message_id', 't.message_id, t.position, t.id'),
      of(DRAFTS, 'draft_id', 't.draft_id, t.position, t.id'),
    ],
  },
  {
    table: 'suppressions',
    columns: [
      'id',
      'email',
      'origin',
      'env_id',
      'inbox_id',
      'message_id',
      'status',
      'diagnostic',
      'created_at',
    ],
    sources: [itself(whole('suppressions', 'suppression'))],
  },
  {
    table: 'list_entries',
    columns: ['id', 'direction', 'effect', 'entry', 'env_id', 'inbox_id', 'created_at'],
    sources: [itself(whole('list_entries', 'listEntry'))],
  },
  {
    table: 'webhook_endpoints',
    columns: [
      ...[
        'id',
        'env_id',
        'url',
        'events',
        'description',
        'inbox_ids',
        'previous_secret_expires_at',
        'disabled',
      ],
      ...['disabled_reason', 'failing_since', 'failures_in_row', 'created_at', 'updated_at', 'deleted_at'],
    ],
    withheld: { secret: 'a secret', previous_secret: 'a secret' },
    sources: [itself(whole('webhook_endpoints', 'webhookEndpoint'))],
  },
  {
    table: 'events',
    columns: ['id', 'env_id', 'inbox_id', 'type', 'data', 'test', 'created_at'],
    withheld: { transaction_id: 'a number of this database alone' },
    sources: [itself(EVENTS)],
  },
  {
    table: 'webhook_deliveries',
    columns: [
      ...['id', 'endpoint_id', 'event_id', 'status', 'attempts', 'episode', 'next_attempt_at'],
      ...['last_status_code', 'last_error', 'held_for', 'created_at', 'completed_at'],
    ],
    withheld: { attempts_before: RUN_OF_ITS_OWN, checked_at: RUN_OF_ITS_OWN },
    sources: [itself(DELIVERIES)],
  },
  {
    table: 'webhook_delivery_attempts',
    columns: [
      ...['delivery_id', 'number', 'started_at', 'finished_at', 'duration_ms', 'status_code'],
      ...['response_body', 'error'],
    ],
    // An answer is up to 4 KiB, and there may be dozens of attempts.
    sources: [of({ ...DELIVERIES, pageSize: 50 }, 'delivery_id', 't.delivery_id, t.number')],
  },
  {
    table: 'webhook_bulk_jobs',
    columns: [
      ...['id', 'env_id', 'endpoint_id', 'kind', 'status', 'detail', 'since', 'until', 'event_types'],
      ...['only_failed', 'deliveries', 'created_at', 'completed_at'],
    ],
    withheld: { position: RUN_OF_ITS_OWN, checked_at: RUN_OF_ITS_OWN },
    sources: [itself(whole('webhook_bulk_jobs', 'bulkJob'))],
  },
  {
    table: 'notifications',
    columns: [
      ...['id', 'user_id', 'email', 'template', 'params', 'status', 'attempts', 'next_attempt_at'],
      ...['last_error', 'created_at', 'sent_at'],
    ],
    withheld: { dedupe_key: 'a key of this database alone', checked_at: RUN_OF_ITS_OWN },
    sources: [itself(whole('notifications', 'notification'))],
  },
  ...EXPORTED_HISTORY,
];

/** Tables whose rows are in no export, each with its reason. A guard test wants every table in one place or the other. */
export const NOT_EXPORTED: Record<string, string> = {
  address_claims: 'who holds an address, service-wide; the addresses are those of the inboxes',
  discarded_objects: 'bytes about to be deleted',
  export_pieces: 'what a running export has to remember',
  exports: 'archives of this organization, as the API tells of them',
  idempotency_keys: 'answers of the last day, sealed',
  inbound_receipts: 'how mail reached this service, for operators; the raw message has its trace fields',
  inbox_credentials: 'hashes of secrets',
  limit_overrides: 'what an administrator of the service decided; usage_events tell of it',
  message_search: 'derived from messages',
  metric_deltas: 'added to metric_hours, into which it is folded',
  mikro_orm_migrations: 'of the schema itself',
  outbox: 'commands on their way to Temporal',
  rate_buckets: 'tokens of the rate limits',
  reputation_outcomes: 'derived from messages and their recipients',
  unattributed_reports: 'nobody knows whose they are',
  usage_alerts: 'told of by usage_events and notifications',
  usage_deltas: 'added to usage_counters and usage_hours, into which it is folded',
  users: 'members have what an organization knows of a person',
  webhook_slots: 'leases of attempts under way',
};
