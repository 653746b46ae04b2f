/**
 * What agents and people who know other mail services call, and the operation that does it here. `*` is any one segment
 * that is no word of an operation.
 * A guess is an exact path below `/api/v1`; other paths are compared segment by segment (`operation-distance.ts`). A guard
 * test checks that every operation exists, and that no guess is an operation.
 */
export interface Guess {
  /** Methods of the guess; unset: any. */
  methods?: readonly string[];
  /** The guessed paths, each as its segments. */
  paths: readonly (readonly string[])[];
  /** `PATCH /drafts/{id}`. */
  operation: string;
  /** How to call it, after its name: `with send_at`. */
  how?: string;
}

const WRITES = ['POST', 'PUT', 'PATCH'] as const;
const READS = ['GET', 'HEAD'] as const;

/** Paths are separated by spaces. */
const GUESSES: readonly (Omit<Guess, 'paths'> & { paths: string })[] = [
  {
    methods: WRITES,
    paths:
      'batch emails/batch messages/batch messages/bulk send/batch bulk batches inboxes/*/batch inboxes/*/send-batch inboxes/*/messages/bulk inboxes/*/messages/send/batch',
    operation: 'POST /inboxes/{inboxId}/messages/batch',
  },
  {
    methods: WRITES,
    paths:
      'labels messages/labels/batch messages/labels/bulk messages/batch/labels messages/bulk/labels messages/labels/add messages/labels/remove messages/modify messages/batch/modify',
    operation: 'POST /messages/labels',
  },
  {
    methods: READS,
    paths: 'drafts/*/poll drafts/*/decision drafts/*/approval approvals/* approvals/*/wait',
    operation: 'GET /drafts/{id}/wait',
  },
  {
    methods: READS,
    paths: 'logs log calls api-calls request-log requests/logs org/requests errors',
    operation: 'GET /requests',
  },
  {
    methods: WRITES,
    paths:
      'send email emails mail mails message messages outbox send-email sendmail emails/send email/send mail/send messages/send send/email emails/new inboxes/*/send inboxes/*/email inboxes/*/emails inboxes/*/mail inboxes/*/messages/send inboxes/*/emails/send inboxes/*/send-email inboxes/*/outbox mailboxes/*/send',
    operation: 'POST /inboxes/{inboxId}/messages',
  },
  {
    methods: WRITES,
    paths:
      'reply messages/reply messages/*/replies messages/*/respond messages/*/answer threads/*/reply threads/*/messages inboxes/*/reply inboxes/*/messages/*/reply emails/*/reply',
    operation: 'POST /messages/{id}/reply',
  },
  {
    methods: WRITES,
    paths:
      'messages/*/reply-all messages/*/reply_all messages/*/replyall reply-all inboxes/*/messages/*/reply-all threads/*/reply-all emails/*/reply-all',
    operation: 'POST /messages/{id}/reply',
    how: 'with reply_all',
  },
  {
    methods: WRITES,
    paths: 'forward messages/forward inboxes/*/messages/*/forward threads/*/forward',
    operation: 'POST /messages/{id}/forward',
  },
  {
    methods: READS,
    paths: 'emails email mail mails inbox messages/list received emails/receiving',
    operation: 'GET /messages',
  },
  {
    methods: READS,
    paths: 'inboxes/*/emails inboxes/*/mail inboxes/*/inbox inboxes/*/received inboxes/*/sent',
    operation: 'GET /inboxes/{inboxId}/messages',
  },
  {
    paths: 'search messages/search emails/search threads/search messages/query find',
    operation: 'GET /messages',
    how: 'with q',
  },
  {
    paths: 'inboxes/*/search inboxes/*/messages/search',
    operation: 'GET /inboxes/{inboxId}/messages',
    how: 'with q',
  },
  {
    methods: WRITES,
    paths:
      'messages/*/read messages/*/unread messages/*/mark-read messages/*/mark-as-read messages/*/seen messages/*/archive messages/*/star messages/*/flag messages/*/tags messages/*/label messages/* messages/*/move messages/*/modify messages/*/spam inboxes/*/messages/*/labels inboxes/*/messages/*',
    operation: 'POST /messages/{id}/labels',
    how: 'with a label of yours',
  },
  {
    paths: 'messages/*/unstar messages/*/unlabel messages/*/unarchive messages/*/not-spam',
    operation: 'POST /messages/{id}/labels/remove',
  },
  {
    methods: READS,
    paths: 'messages/*/status messages/*/delivery messages/*/outcome emails/* inboxes/*/messages/* mail/*',
    operation: 'GET /messages/{id}',
  },
  {
    methods: READS,
    paths: 'messages/*/events messages/*/history messages/*/log',
    operation: 'GET /events',
    how: 'with message_id',
  },
  { methods: READS, paths: 'messages/*/thread messages/*/conversation', operation: 'GET /threads/{id}' },
  {
    methods: READS,
    paths: 'messages/*/attachments messages/*/attachments/* attachments/*/download inboxes/*/attachments/*',
    operation: 'GET /attachments/{id}',
  },
  {
    methods: READS,
    paths: 'attachments/*/content attachments/*/extract attachments/*/read messages/*/attachments/*/text',
    operation: 'GET /attachments/{id}/text',
  },
  {
    methods: WRITES,
    paths: 'attachments upload uploads files messages/*/attachments drafts/*/attachments',
    operation: 'POST /inboxes/{inboxId}/attachments',
  },
  {
    methods: WRITES,
    paths:
      'drafts/*/schedule drafts/*/send-later drafts/*/send_later drafts/*/reschedule messages/*/schedule',
    operation: 'PATCH /drafts/{id}',
    how: 'with send_at',
  },
  {
    paths: 'drafts/*/unschedule drafts/*/cancel drafts/*/cancel-schedule drafts/*/schedule/cancel',
    operation: 'PATCH /drafts/{id}',
    how: 'with send_at null',
  },
  {
    methods: ['DELETE'],
    paths: 'drafts/*/schedule',
    operation: 'PATCH /drafts/{id}',
    how: 'with send_at null',
  },
  {
    methods: WRITES,
    paths: 'schedule scheduled scheduled-messages send-later inboxes/*/schedule inboxes/*/scheduled',
    operation: 'POST /inboxes/{inboxId}/drafts',
    how: 'with send_at',
  },
  {
    methods: READS,
    paths: 'schedule scheduled scheduled-messages drafts/scheduled messages/scheduled',
    operation: 'GET /drafts',
    how: 'with send_status=scheduled',
  },
  {
    methods: READS,
    paths: 'approvals drafts/pending drafts/approvals pending approvals/pending',
    operation: 'GET /drafts',
    how: 'with send_status=pending_approval',
  },
  {
    methods: WRITES,
    paths: 'drafts draft inboxes/*/draft messages/draft messages/drafts',
    operation: 'POST /inboxes/{inboxId}/drafts',
  },
  {
    methods: WRITES,
    paths: 'drafts/*/submit drafts/*/request-approval drafts/*/send-now inboxes/*/drafts/*/send',
    operation: 'POST /drafts/{id}/send',
  },
  {
    methods: WRITES,
    paths: 'webhook webhooks hooks hook webhooks/create subscriptions inboxes/*/webhooks callbacks',
    operation: 'POST /webhooks/endpoints',
  },
  {
    methods: READS,
    paths: 'webhook webhooks hooks hook webhooks/list inboxes/*/webhooks',
    operation: 'GET /webhooks/endpoints',
  },
  { methods: READS, paths: 'webhooks/* hooks/*', operation: 'GET /webhooks/endpoints/{id}' },
  { methods: WRITES, paths: 'webhooks/* hooks/*', operation: 'PATCH /webhooks/endpoints/{id}' },
  { methods: ['DELETE'], paths: 'webhooks/* hooks/*', operation: 'DELETE /webhooks/endpoints/{id}' },
  { methods: WRITES, paths: 'webhooks/*/test hooks/*/test', operation: 'POST /webhooks/endpoints/{id}/test' },
  { methods: READS, paths: 'apikeys api_keys keys tokens org/keys credentials', operation: 'GET /api-keys' },
  { methods: WRITES, paths: 'apikeys api_keys keys tokens org/keys', operation: 'POST /api-keys' },
  { methods: ['DELETE'], paths: 'apikeys/* keys/* tokens/*', operation: 'DELETE /api-keys/{id}' },
  {
    methods: READS,
    paths:
      'whoami account user profile self users/me auth/me auth/whoami session credential permissions scopes key api-keys/me api-keys/current auth/test auth/verify rate-limit',
    operation: 'GET /me',
  },
  { methods: READS, paths: 'quota usage account/usage me/usage', operation: 'GET /org/usage' },
  { methods: READS, paths: 'limits quotas account/limits', operation: 'GET /org/limits' },
  { methods: READS, paths: 'organization organizations orgs organizations/* team', operation: 'GET /org' },
  { methods: READS, paths: 'members users team/members', operation: 'GET /org/members' },
  { methods: READS, paths: 'environments envs pods', operation: 'GET /org/environments' },
  { methods: READS, paths: 'policies settings org/settings', operation: 'GET /org/policies' },
  {
    methods: READS,
    paths: 'audit audit-log audit-logs audit_log org/audit',
    operation: 'GET /org/audit-log',
  },
  {
    methods: READS,
    paths: 'bounces unsubscribes complaints suppression suppression-list suppressed',
    operation: 'GET /suppressions',
  },
  { methods: WRITES, paths: 'block unsubscribe suppress', operation: 'POST /suppressions' },
  {
    methods: READS,
    paths:
      'blocklist blacklist block-list blocked allowlist whitelist allow-list lists lists/send lists/receive',
    operation: 'GET /lists/{direction}/{effect}',
  },
  {
    methods: WRITES,
    paths: 'blocklist blacklist block-list allowlist whitelist allow-list lists lists/send lists/receive',
    operation: 'POST /lists/{direction}/{effect}',
  },
  { methods: READS, paths: 'stream sse ws websocket live events/live', operation: 'GET /events/stream' },
  {
    paths: 'wait poll inboxes/*/wait inboxes/*/poll inboxes/*/next inboxes/*/messages/next messages/wait',
    operation: 'GET /inboxes/{inboxId}/messages/wait',
  },
  { methods: READS, paths: 'stats statistics analytics reports metrics/stats', operation: 'GET /metrics' },
  {
    paths: 'domains/*/check domains/*/status domains/*/verification',
    operation: 'POST /domains/{id}/verify',
  },
  { methods: READS, paths: 'domains/*/dns domains/*/records', operation: 'GET /domains/{id}' },
  {
    methods: WRITES,
    paths: 'inboxes/*/stop inboxes/*/disable inboxes/*/deactivate inboxes/*/suspend',
    operation: 'POST /inboxes/{id}/pause',
  },
  {
    methods: WRITES,
    paths: 'inboxes/*/unpause inboxes/*/enable inboxes/*/activate',
    operation: 'POST /inboxes/{id}/resume',
  },
];

export const WRONG_GUESSES: readonly Guess[] = GUESSES.map(({ paths, ...guess }) => ({
  ...guess,
  paths: paths.split(' ').map((path) => path.split('/')),
}));
