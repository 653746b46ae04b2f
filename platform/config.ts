import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';

/**
 * Every setting of every process, with its default. `.env.example` lists the same names (a test compares them).
 * Secrets have no default: a process that lacks one does not start.
 */
const text = (description: string, fallback?: string) =>
  Type.String({ description, minLength: 1, ...(fallback === undefined ? {} : { default: fallback }) });
const optionalText = (description: string) => Type.Optional(Type.String({ description, minLength: 1 }));
const integer = (description: string, fallback: number, minimum = 0, maximum = Number.MAX_SAFE_INTEGER) =>
  Type.Integer({ description, default: fallback, minimum, maximum });
const flag = (description: string, fallback: boolean) => Type.Boolean({ description, default: fallback });

export const ConfigSchema = Type.Object({
  NODE_ENV: Type.Enum(['production', 'dev', 'test'], {
    description: 'production demands HTTPS webhook URLs and refuses development shortcuts.',
    default: 'production',
  }),
  LOG_LEVEL: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    description: 'pino level.',
    default: 'info',
  }),

  DATABASE_URL: text('PostgreSQL 16 or newer, as the role of this process (api or worker).'),
  DATABASE_POOL_SIZE: integer('Connections a process may hold.', 10, 1, 500),
  MIGRATION_DATABASE_URL: optionalText('Owner of the schema; read by `npm run migrate` alone.'),
  API_DATABASE_URL: optionalText(
    'Login `npm run migrate` makes for the API (row-level security applies to it).',
  ),
  WORKER_DATABASE_URL: optionalText(
    'Login `npm run migrate` makes for workers and listeners; the API needs it where providers hand mail or reports over.',
  ),

  TEMPORAL_ADDRESS: text('host:port of the Temporal frontend.', '127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: text('Temporal namespace.', 'default'),
  TEMPORAL_TLS: flag('Connect to Temporal over TLS.', false),
  TEMPORAL_API_KEY: optionalText('API key for Temporal Cloud.'),
  TEMPORAL_METRICS_ADDRESS: optionalText(
    'address:port where a worker’s Temporal SDK serves its metrics, best 127.0.0.1: the worker’s /metrics holds them, too.',
  ),

  S3_ENDPOINT: optionalText('URL of the S3 service; empty means AWS.'),
  S3_PUBLIC_ENDPOINT: optionalText('URL under which clients reach S3 for presigned links, where it differs.'),
  S3_REGION: text('S3 region.', 'us-east-1'),
  S3_BUCKET: text('Bucket for raw mail and attachments.', 'agent-email'),
  S3_ACCESS_KEY_ID: optionalText('S3 access key; empty means the SDK finds credentials by itself.'),
  S3_SECRET_ACCESS_KEY: optionalText('S3 secret key.'),
  S3_FORCE_PATH_STYLE: flag('Path-style bucket addresses (most self-hosted S3 servers).', true),

  API_HOST: text('Address the API listens on.', '127.0.0.1'),
  API_PORT: integer('Port the API listens on.', 3000, 0, 65_535),
  PUBLIC_URL: text(
    'URL under which clients reach the API; problem types point into its docs.',
    'http://127.0.0.1:3000',
  ),
  TRUST_PROXY: optionalText(
    'Comma-separated addresses or CIDRs of reverse proxies whose X-Forwarded-For is believed.',
  ),
  RATE_LIMIT_PER_SECOND: integer('Requests a second for a credential.', 50, 1),
  RATE_LIMIT_BURST: integer('Burst for a credential.', 100, 1),
  ORGANIZATION_RATE_LIMIT_PER_SECOND: integer(
    'Requests a second for an organization, over all its credentials.',
    500,
    1,
  ),
  ORGANIZATION_RATE_LIMIT_BURST: integer('Burst for an organization.', 1000, 1),
  STREAMS_PER_CREDENTIAL: integer(
    'Live streams and waiting calls a credential may hold open at one API process; 0: none.',
    100,
  ),
  STREAMS_PER_PROCESS: integer(
    'Live streams and waiting calls an API process holds open over all credentials.',
    2_000,
    1,
  ),
  STREAM_HEARTBEAT_MS: integer(
    'How often a live stream shows that it lives, and its credential is looked at again.',
    15_000,
    100,
    60_000,
  ),
  SIGNALS_DATABASE_URL: optionalText(
    'PostgreSQL itself, as the role of the API, where DATABASE_URL leads to a pooler: notifications do not pass one.',
  ),
  METRICS_TOKEN: optionalText(
    'Bearer token for /metrics of the API and of workers (at WORKER_HEALTH_PORT); without one the path answers 404.',
  ),

  ENCRYPTION_KEY: text('32 bytes, base64: encrypts secrets at rest (AES-256-GCM).'),
  SIGNING_KEY: text('32 bytes, base64: signs cursors and return-path tokens (HMAC-SHA256).'),

  MAIL_DOMAIN: text('The shared domain inboxes get their addresses on.'),
  BOUNCE_DOMAIN: optionalText('Domain of return paths; empty means bounces.<MAIL_DOMAIN>.'),
  FEEDBACK_ADDRESS: optionalText(
    'Where mailbox providers send complaints (RFC 5965), as registered with them; empty means complaints@<BOUNCE_DOMAIN>.',
  ),
  SYSTEM_MAIL_FROM: optionalText(
    'Address the service’s own mails come from; empty means no-reply@<MAIL_DOMAIN>.',
  ),
  MAIL_TRANSPORT: Type.Enum(['smtp', 'ses', 'simulator'], {
    description: 'How mail leaves.',
    default: 'smtp',
  }),
  SMTP_RELAY_HOST: text('Relay host.', '127.0.0.1'),
  SMTP_RELAY_PORT: integer('Relay port.', 2525, 1, 65_535),
  SMTP_RELAY_TLS: Type.Enum(['none', 'opportunistic', 'required', 'implicit'], {
    description:
      'TLS towards the relay: none, STARTTLS where offered, STARTTLS or fail, TLS from the first byte.',
    default: 'opportunistic',
  }),
  SMTP_RELAY_USER: optionalText('Relay user.'),
  SMTP_RELAY_PASSWORD: optionalText('Relay password.'),
  SMTP_RELAY_POOL_SIZE: integer('Connections a worker holds to the relay.', 10, 1, 500),
  SMTP_RELAYED_IS_DELIVERED: flag(
    'An `Action: relayed` report counts as delivered (the next hop cannot report).',
    true,
  ),
  SES_REGION: text('Region of Amazon SES.', 'us-east-1'),
  SES_CONFIGURATION_SET: optionalText(
    'SES configuration set whose events come back; empty means none are awaited.',
  ),
  SES_ENDPOINT: optionalText('URL of SES; empty means AWS.'),
  SES_ACCESS_KEY_ID: optionalText('SES access key; empty means the SDK finds credentials by itself.'),
  SES_SECRET_ACCESS_KEY: optionalText('SES secret key.'),
  SES_TOPIC_ARNS: optionalText(
    'Comma-separated ARNs of the SNS topics whose notifications of SES are believed; empty means none.',
  ),
  SES_INBOUND_BUCKETS: optionalText(
    'Comma-separated S3 buckets SES puts received mail into; from others nothing is read, empty means from none.',
  ),
  SES_INBOUND_S3_ENDPOINT: optionalText('URL of the S3 service of those buckets; empty means AWS.'),
  MAIL_RETRY_WINDOW_HOURS: integer('How long a deferred message is retried before it bounces.', 24, 1, 240),

  DNS_SERVERS: optionalText(
    'Comma-separated resolvers as address or address:port; empty means those of the system.',
  ),
  DNS_TIMEOUT_MS: integer('How long a resolver has to answer; doubled with each try.', 2_000, 50, 30_000),
  DNS_TRIES: integer('How often a resolver is asked.', 2, 1, 10),

  SPF_MECHANISM: optionalText(
    'SPF term a custom domain publishes; empty means include:<return-path domain>, whose SPF record names your relay.',
  ),
  INBOUND_MX_HOST: optionalText(
    'Host a custom domain’s MX points to; empty means INBOUND_SMTP_HOSTNAME, else MAIL_DOMAIN.',
  ),
  DKIM_SHARED_SELECTOR: optionalText(
    'Selector under which MAIL_DOMAIN publishes its DKIM key; with it mail of the shared domain is signed.',
  ),
  DKIM_SHARED_PRIVATE_KEY_FILE: optionalText('PEM private key (RSA, 2048 bits) of that selector.'),

  INBOUND_SMTP_HOST: text('Address the inbound listener binds.', '127.0.0.1'),
  INBOUND_SMTP_PORT: integer('Port of the inbound listener.', 2526, 0, 65_535),
  INBOUND_SMTP_HOSTNAME: optionalText('Name in the greeting; empty means MAIL_DOMAIN.'),
  INBOUND_SMTP_TLS_KEY_FILE: optionalText('PEM private key for STARTTLS.'),
  INBOUND_SMTP_TLS_CERT_FILE: optionalText('PEM certificate chain for STARTTLS.'),
  INBOUND_SMTP_MAX_CONNECTIONS: integer('Connections at once.', 200, 1),
  INBOUND_SMTP_MAX_CONNECTIONS_PER_IP: integer(
    'Connections at once from one IPv4 address or IPv6 /64; raise it where all mail comes through one gateway.',
    50,
    1,
  ),
  INBOUND_MAX_SIZE_BYTES: integer(
    'Largest message accepted (25 MiB of attachments grow by encoding).',
    37_748_736,
    1024,
  ),
  AUTHENTICATE_INBOUND: flag(
    'Look up SPF, DKIM and DMARC of received mail; off where something in front of this did it.',
    true,
  ),
  RSPAMD_URL: optionalText(
    'URL of rspamd’s normal worker, as http://rspamd:11333; empty means a rule on DMARC alone.',
  ),
  RSPAMD_TIMEOUT_MS: integer(
    'Time rspamd has for a mail; after it the mail is let through.',
    4_000,
    100,
    60_000,
  ),
  MAIL_PARSER_PROCESSES: integer(
    'Processes a mail worker reads mail in, each of about 60 MiB (256 at most). All but one may be at large mails.',
    2,
    1,
    32,
  ),

  SUBMISSION_SMTP_HOST: text('Address the submission listener binds.', '127.0.0.1'),
  SUBMISSION_SMTP_PORT: integer('Port of the submission listener (STARTTLS).', 2587, 0, 65_535),
  SUBMISSION_SMTP_TLS_PORT: integer(
    'Port of submission with TLS from the first byte; 0 means none.',
    0,
    0,
    65_535,
  ),
  SUBMISSION_SMTP_PUBLIC_PORT: integer(
    'The port mail programs are told, where it is another than SUBMISSION_SMTP_PORT; 0 means the same.',
    0,
    0,
    65_535,
  ),
  SUBMISSION_SMTP_HOSTNAME: optionalText(
    'The name mail programs are told, and of the greeting; empty means MAIL_DOMAIN.',
  ),
  SUBMISSION_SMTP_TLS_KEY_FILE: optionalText(
    'PEM private key; submission does not start without one outside development.',
  ),
  SUBMISSION_SMTP_TLS_CERT_FILE: optionalText('PEM certificate chain.'),

  PROVIDER_RAW_SECRET: optionalText(
    'Secret mail servers sign with at POST /api/v1/providers/raw; without one nothing is accepted there.',
  ),

  DEFAULT_TIER: Type.Enum(['free', 'developer', 'business', 'enterprise'], {
    description: 'Limits of new organizations (docs/usage.md); enterprise has none.',
    default: 'enterprise',
  }),

  WEBHOOK_TIMEOUT_MS: integer('Time a receiver has to answer.', 15_000, 100, 60_000),
  EVENT_RETENTION_DAYS: integer(
    'Days events and their deliveries are kept, and can be replayed; a delivery is tried for two.',
    30,
    3,
    3_650,
  ),
  EGRESS_ALLOW: optionalText('Comma-separated CIDRs strangers may be reached at although they are private.'),
  EGRESS_ALLOW_PORTS: optionalText('Comma-separated further ports webhooks may use; `*` means any.'),

  SCHEDULES_ENABLED: flag('The maintenance worker creates and keeps the Temporal schedules.', true),
  WORKER_CONCURRENCY: integer('Activities of a task queue a worker runs at once.', 50, 1, 1000),
  WORKER_HEALTH_HOST: text('Address of a worker’s health checks.', '127.0.0.1'),
  WORKER_HEALTH_PORT: integer('Port for a worker’s health checks; 0 means none.', 0, 0, 65_535),
});

export type Config = Readonly<Static<typeof ConfigSchema>>;

/**
 * Reads and freezes the configuration of this process.
 *
 * @throws Error naming every variable that is missing or wrong, one a line.
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, property] of Object.entries(ConfigSchema.properties)) {
    const given = environment[name];
    if (given === undefined || given === '') continue;
    values[name] = parseWord(property as { type?: string }, given);
  }
  const candidate = Value.Default(ConfigSchema, values);
  for (const error of Value.Errors(ConfigSchema, candidate)) {
    const missing = (error.params as { requiredProperties?: string[] }).requiredProperties;
    if (missing) problems.push(...missing.map((name) => `${name} is required: ${describe(name)}`));
    else problems.push(`${error.instancePath.slice(1)} ${error.message}`);
  }
  if (problems.length > 0) throw new Error(`Configuration is not usable:\n  ${problems.join('\n  ')}`);
  return Object.freeze(candidate as Static<typeof ConfigSchema>);
}

function parseWord(property: { type?: string }, given: string): unknown {
  if (property.type === 'integer') return /^-?\d+$/.test(given.trim()) ? Number(given) : given;
  if (property.type !== 'boolean') return given;
  if (/^(true|yes|on|1)$/i.test(given)) return true;
  if (/^(false|no|off|0)$/i.test(given)) return false;
  return given;
}

function describe(name: string): string {
  const property = (ConfigSchema.properties as Record<string, { description?: string }>)[name];
  return property?.description ?? '';
}

/** The host that takes mail for custom domains. */
export function inboundMxHost(
  config: Pick<Config, 'INBOUND_MX_HOST' | 'INBOUND_SMTP_HOSTNAME' | 'MAIL_DOMAIN'>,
): string {
  return config.INBOUND_MX_HOST ?? config.INBOUND_SMTP_HOSTNAME ?? config.MAIL_DOMAIN;
}

/** SPF term of custom domains. */
export function spfMechanism(
  config: Pick<Config, 'SPF_MECHANISM' | 'BOUNCE_DOMAIN' | 'MAIL_DOMAIN'>,
): string {
  return config.SPF_MECHANISM ?? `include:${bounceDomain(config)}`;
}

/** The domain return paths live on. */
export function bounceDomain(config: Pick<Config, 'BOUNCE_DOMAIN' | 'MAIL_DOMAIN'>): string {
  return config.BOUNCE_DOMAIN ?? `bounces.${config.MAIL_DOMAIN}`;
}

/** Where complaints come to, in lower case. */
export function feedbackAddress(
  config: Pick<Config, 'FEEDBACK_ADDRESS' | 'BOUNCE_DOMAIN' | 'MAIL_DOMAIN'>,
): string {
  return (config.FEEDBACK_ADDRESS ?? `complaints@${bounceDomain(config)}`).toLowerCase();
}

/** From address of the service's own mails. */
export function systemMailFrom(config: Pick<Config, 'SYSTEM_MAIL_FROM' | 'MAIL_DOMAIN'>): string {
  return config.SYSTEM_MAIL_FROM ?? `no-reply@${config.MAIL_DOMAIN}`;
}

/** Whether providers hand mail or reports over at the API. */
export function takesFromProviders(config: Pick<Config, 'PROVIDER_RAW_SECRET' | 'SES_TOPIC_ARNS'>): boolean {
  return config.PROVIDER_RAW_SECRET !== undefined || config.SES_TOPIC_ARNS !== undefined;
}
