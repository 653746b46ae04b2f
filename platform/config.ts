import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { isCidr } from './network.ts';

/**
 * Every setting of every process, with its default. `.env.example` is generated from it (a test compares them).
 * Secrets have no default: a process does not start without them.
 */
const text = (description: string, fallback?: string) =>
  Type.String({ description, minLength: 1, ...(fallback === undefined ? {} : { default: fallback }) });
const optionalText = (description: string) => Type.Optional(Type.String({ description, minLength: 1 }));
const integer = (description: string, fallback: number, minimum = 0, maximum = Number.MAX_SAFE_INTEGER) =>
  Type.Integer({ description, default: fallback, minimum, maximum });
const flag = (description: string, fallback: boolean) => Type.Boolean({ description, default: fallback });

export const ConfigSchema = Type.Object({
  NODE_ENV: Type.Enum(['production', 'dev', 'test'], {
    description: 'production requires HTTPS webhook URLs and rejects development shortcuts.',
    default: 'production',
  }),
  LOG_LEVEL: Type.Enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], {
    description: 'Log level (pino).',
    default: 'info',
  }),

  DATABASE_URL: text('URL of PostgreSQL 16 or newer, with the login of this process (API or worker).'),
  DATABASE_POOL_SIZE: integer('Maximum number of database connections per process.', 10, 1, 500),
  MIGRATION_DATABASE_URL: optionalText(
    'URL with the login of the schema owner; only `npm run migrate` reads it.',
  ),
  API_DATABASE_URL: optionalText(
    'URL with the login that `npm run migrate` creates for the API (row-level security applies to it).',
  ),
  WORKER_DATABASE_URL: optionalText(
    'URL with the login that `npm run migrate` creates for workers and listeners; the API needs it if providers deliver mail or reports to it, or with BILLING_ENABLED.',
  ),

  TEMPORAL_ADDRESS: text('host:port of the Temporal frontend.', '127.0.0.1:7233'),
  TEMPORAL_NAMESPACE: text('Temporal namespace.', 'default'),
  TEMPORAL_TLS: flag('Connect to Temporal over TLS.', false),
  TEMPORAL_API_KEY: optionalText('API key for Temporal Cloud.'),
  TEMPORAL_UI_URL: optionalText('URL of the Temporal UI, for links to runs in /admin; empty means no links.'),
  TEMPORAL_METRICS_ADDRESS: optionalText(
    'address:port where a worker’s Temporal SDK serves its metrics, which the worker’s /metrics includes; empty means a free port of 127.0.0.1, if there is a METRICS_TOKEN.',
  ),

  S3_ENDPOINT: optionalText('URL of the S3 service; empty means AWS.'),
  S3_PUBLIC_ENDPOINT: optionalText(
    'URL at which clients reach S3 for presigned links; empty means S3_ENDPOINT.',
  ),
  S3_REGION: text('S3 region.', 'us-east-1'),
  S3_BUCKET: text('Bucket for raw messages, attachments and exports.', 'agent-email'),
  S3_ACCESS_KEY_ID: optionalText('S3 access key; empty means the SDK’s own credential chain.'),
  S3_SECRET_ACCESS_KEY: optionalText('S3 secret key.'),
  S3_FORCE_PATH_STYLE: flag('Use path-style bucket addresses (most self-hosted S3 servers need them).', true),

  API_HOST: text('Address the API listens on.', '127.0.0.1'),
  API_PORT: integer('Port the API listens on.', 3000, 0, 65_535),
  PUBLIC_URL: text(
    'URL at which browsers and clients reach the service, with a host name: passkeys belong to it and stop working if it changes.',
    'http://localhost:3000',
  ),
  TRUST_PROXY: optionalText(
    'Comma-separated addresses or CIDRs of reverse proxies whose X-Forwarded-For is trusted.',
  ),
  MCP_ALLOWED_ORIGINS: optionalText(
    'Comma-separated origins (https://app.example.com) of web pages that may call /mcp, besides that of PUBLIC_URL; programs that send no Origin always may.',
  ),
  RATE_LIMIT_PER_SECOND: integer('Requests per second per credential.', 50, 1),
  RATE_LIMIT_BURST: integer('Burst per credential.', 100, 1),
  ORGANIZATION_RATE_LIMIT_PER_SECOND: integer(
    'Requests per second per organization, over all its credentials.',
    500,
    1,
  ),
  ORGANIZATION_RATE_LIMIT_BURST: integer('Burst per organization.', 1000, 1),
  STREAMS_PER_CREDENTIAL: integer(
    'Maximum open live streams and waiting calls per credential and API process; 0 means none.',
    100,
  ),
  STREAMS_PER_PROCESS: integer(
    'Maximum open live streams and waiting calls per API process, over all credentials.',
    2_000,
    1,
  ),
  STREAM_HEARTBEAT_MS: integer(
    'Interval of a live stream’s heartbeat. It also checks the credential, whose changes otherwise end the stream within a second.',
    15_000,
    100,
    60_000,
  ),
  SIGNALS_DATABASE_URL: optionalText(
    'Direct connection to PostgreSQL with the API login, if DATABASE_URL points to a pooler: LISTEN does not work through one.',
  ),
  METRICS_TOKEN: optionalText(
    'Bearer token for /metrics of the API and of workers (at WORKER_HEALTH_PORT); without it every request gets 401.',
  ),

  OTEL_EXPORTER_OTLP_ENDPOINT: optionalText(
    'URL of an OpenTelemetry collector (OTLP over HTTP), e.g. http://collector:4318: processes send their traces to its /v1/traces. Without it nothing is traced.',
  ),
  OTEL_EXPORTER_OTLP_HEADERS: optionalText(
    'Headers of those requests as name=value,name=value, percent-encoded.',
  ),
  OTEL_SERVICE_NAME: optionalText(
    'service.name of the traces; empty means agent-email- and the name of the process.',
  ),
  OTEL_RESOURCE_ATTRIBUTES: optionalText(
    'Further attributes of the traces’ resource as name=value,name=value, percent-encoded.',
  ),
  OTEL_TRACES_SAMPLER: Type.Enum(
    [
      'always_on',
      'always_off',
      'traceidratio',
      'parentbased_always_on',
      'parentbased_always_off',
      'parentbased_traceidratio',
    ],
    { description: 'Which requests are traced.', default: 'parentbased_always_on' },
  ),
  OTEL_TRACES_SAMPLER_ARG: Type.Number({
    description: 'Share of requests to trace, for the traceidratio samplers.',
    default: 1,
    minimum: 0,
    maximum: 1,
  }),

  APPROVAL_DAYS: integer(
    'Days that a draft waits for the approval of a person; then it is rejected.',
    7,
    1,
    90,
  ),

  ENCRYPTION_KEY: text(
    '32 bytes, base64: encrypts secrets at rest (AES-256-GCM). To rotate, several separated by commas: the first encrypts, all decrypt (docs/operations.md).',
  ),
  SIGNING_KEY: text(
    '32 bytes, base64: signs cursors, return paths, unsubscribe links and recovery codes (HMAC-SHA256). To rotate, several separated by commas: the first signs, signatures of all are valid.',
  ),

  MAIL_DOMAIN: text('The shared domain of inbox addresses.'),
  BOUNCE_DOMAIN: optionalText('Domain of return paths; empty means bounces.<MAIL_DOMAIN>.'),
  FEEDBACK_ADDRESS: optionalText(
    'Address for complaints (RFC 5965), as registered with mailbox providers; empty means complaints@<BOUNCE_DOMAIN>.',
  ),
  SYSTEM_MAIL_FROM: optionalText(
    'From address of the service’s own emails; empty means no-reply@<MAIL_DOMAIN>.',
  ),
  MAIL_TRANSPORT: Type.Enum(['smtp', 'ses', 'simulator'], {
    description: 'Transport of outbound mail.',
    default: 'smtp',
  }),
  SMTP_RELAY_HOST: text('Host of the relay.', '127.0.0.1'),
  SMTP_RELAY_PORT: integer('Port of the relay.', 2525, 1, 65_535),
  SMTP_RELAY_TLS: Type.Enum(['none', 'opportunistic', 'required', 'implicit'], {
    description: 'TLS to the relay: never, STARTTLS if offered, STARTTLS or fail, implicit TLS.',
    default: 'opportunistic',
  }),
  SMTP_RELAY_TLS_CA_FILE: optionalText(
    'PEM file with the certificate authorities of the relay; empty means the public ones.',
  ),
  SMTP_RELAY_USER: optionalText(
    'User name for the relay. It and the password are sent only over TLS with a valid certificate, so that opportunistic means required.',
  ),
  SMTP_RELAY_PASSWORD: optionalText('Password for the relay.'),
  SMTP_RELAY_INSECURE_AUTH: flag(
    'Send the password even without TLS or with an invalid certificate: only for a relay on the same machine.',
    false,
  ),
  SMTP_RELAY_POOL_SIZE: integer('Maximum number of connections to the relay per worker.', 10, 1, 500),
  SMTP_RELAYED_IS_DELIVERED: flag(
    'Count an `Action: relayed` report as delivered (the next hop does not report).',
    true,
  ),
  SES_REGION: text('Region of Amazon SES.', 'us-east-1'),
  SES_CONFIGURATION_SET: optionalText(
    'SES configuration set that publishes events; empty means no events are expected.',
  ),
  SES_ENDPOINT: optionalText('URL of SES; empty means AWS.'),
  SES_ACCESS_KEY_ID: optionalText('SES access key; empty means the SDK’s own credential chain.'),
  SES_SECRET_ACCESS_KEY: optionalText('SES secret key.'),
  SES_TOPIC_ARNS: optionalText(
    'Comma-separated ARNs of the SNS topics whose SES notifications are accepted; empty means none.',
  ),
  SES_INBOUND_BUCKETS: optionalText(
    'Comma-separated S3 buckets that SES stores received mail in; no other bucket is read, empty means none.',
  ),
  SES_INBOUND_S3_ENDPOINT: optionalText('URL of the S3 service of those buckets; empty means AWS.'),
  MAIL_RETRY_WINDOW_HOURS: integer('Hours a deferred message is retried before it bounces.', 24, 1, 240),

  DNS_SERVERS: optionalText(
    'Comma-separated resolvers as address or address:port; empty means the system’s resolvers.',
  ),
  DNS_TIMEOUT_MS: integer('Timeout of a DNS query; doubles with each try.', 2_000, 50, 30_000),
  DNS_TRIES: integer('Number of tries per resolver.', 2, 1, 10),

  SPF_MECHANISM: optionalText(
    'SPF mechanism that a custom domain publishes; empty means include:<BOUNCE_DOMAIN>, whose SPF record names your relay.',
  ),
  INBOUND_MX_HOST: optionalText(
    'MX host of custom domains; empty means INBOUND_SMTP_HOSTNAME, or else MAIL_DOMAIN.',
  ),
  DKIM_SHARED_SELECTOR: optionalText(
    'DKIM selector of MAIL_DOMAIN; if set, mail from the shared domain is signed.',
  ),
  DKIM_SHARED_PRIVATE_KEY_FILE: optionalText(
    'PEM file with the private key (RSA, 2048 bits) of that selector.',
  ),

  INBOUND_SMTP_HOST: text('Address the inbound listener listens on.', '127.0.0.1'),
  INBOUND_SMTP_PORT: integer('Port of the inbound listener.', 2526, 0, 65_535),
  INBOUND_SMTP_HOSTNAME: optionalText('Host name in the SMTP greeting; empty means MAIL_DOMAIN.'),
  INBOUND_SMTP_TLS_KEY_FILE: optionalText('PEM file with the private key for STARTTLS.'),
  INBOUND_SMTP_TLS_CERT_FILE: optionalText(
    'PEM file with the certificate chain for STARTTLS; a renewed one is used without a restart.',
  ),
  INBOUND_SMTP_MAX_CONNECTIONS: integer('Maximum concurrent connections.', 200, 1),
  INBOUND_SMTP_MAX_CONNECTIONS_PER_IP: integer(
    'Maximum concurrent connections from one IPv4 address or IPv6 /64; raise it if all mail comes through one gateway.',
    50,
    1,
  ),
  CATCH_ALL_MESSAGES_PER_HOUR: integer(
    'Messages an hour that the catch-all inbox of a domain receives; more are deferred.',
    600,
    1,
  ),
  INBOUND_MAX_SIZE_BYTES: integer(
    'Maximum size of a message (25 MiB of attachments grow to about 35 MB in base64).',
    37_748_736,
    1024,
  ),
  AUTHENTICATE_INBOUND: flag(
    'Check SPF, DKIM and DMARC of received mail; turn it off if a gateway in front does it.',
    true,
  ),
  RSPAMD_URL: optionalText(
    'URL of rspamd’s normal worker, e.g. http://rspamd:11333; without it only a DMARC failure marks spam.',
  ),
  RSPAMD_TIMEOUT_MS: integer(
    'Timeout of an rspamd scan; a message is then accepted without a verdict.',
    4_000,
    100,
    60_000,
  ),
  MAIL_PARSER_PROCESSES: integer(
    'Parser processes per inbound worker; each uses about 60 MiB (at most 256). All but one may parse large messages.',
    2,
    1,
    32,
  ),

  HTML_CONVERTER_PROCESSES: integer(
    'Processes of the API that convert the HTML of replied and forwarded messages; each uses about 60 MiB (at most 256).',
    2,
    1,
    32,
  ),

  SUBMISSION_SMTP_HOST: text('Address the submission listener listens on.', '127.0.0.1'),
  SUBMISSION_SMTP_PORT: integer('Port of the submission listener (STARTTLS).', 2587, 0, 65_535),
  SUBMISSION_SMTP_TLS_PORT: integer(
    'Port of the submission listener (implicit TLS); 0 means none.',
    0,
    0,
    65_535,
  ),
  SUBMISSION_SMTP_PUBLIC_PORT: integer(
    'Submission port shown to users of email clients; 0 means SUBMISSION_SMTP_PORT.',
    0,
    0,
    65_535,
  ),
  SUBMISSION_SMTP_HOSTNAME: optionalText(
    'Submission host shown to users of email clients and in the SMTP greeting; empty means MAIL_DOMAIN.',
  ),
  SUBMISSION_SMTP_TLS_KEY_FILE: optionalText('PEM file with the private key; required outside development.'),
  SUBMISSION_SMTP_TLS_CERT_FILE: optionalText(
    'PEM file with the certificate chain; a renewed one is used without a restart.',
  ),

  PROVIDER_RAW_SECRET: optionalText(
    'Secret with which mail servers sign requests to POST /api/v1/providers/raw; without it the route rejects every request.',
  ),

  OAUTH_GOOGLE_CLIENT_ID: optionalText(
    'Client ID at Google; people can then sign in with it. The redirect URI of a provider is PUBLIC_URL/api/v1/auth/oauth/{id}/callback, here with the id google.',
  ),
  OAUTH_GOOGLE_CLIENT_SECRET: optionalText('Client secret at Google.'),
  OAUTH_GITHUB_CLIENT_ID: optionalText('Client ID of an OAuth app at GitHub (id github).'),
  OAUTH_GITHUB_CLIENT_SECRET: optionalText('Client secret of the OAuth app at GitHub.'),
  OAUTH_GITHUB_URL: text('URL of GitHub, or of a GitHub Enterprise Server.', 'https://github.com'),
  OAUTH_GITHUB_API_URL: text(
    'URL of its API; https://HOST/api/v3 for a GitHub Enterprise Server.',
    'https://api.github.com',
  ),
  OAUTH_OIDC_PROVIDERS: optionalText(
    'Further OpenID Connect providers, a JSON array of {"id": "example", "name": "Example", "issuer": "https://id.example", "client_id": "…", "client_secret": "…", "verifies_email": true}. Set verifies_email only if the provider verifies the addresses of everyone: their first sign-in then creates an account.',
  ),

  DEFAULT_TIER: Type.Enum(['free', 'developer', 'business', 'enterprise'], {
    description:
      'Tier of new organizations, which sets their limits (docs/usage.md); enterprise has no limits.',
    default: 'enterprise',
  }),

  BILLING_ENABLED: flag(
    'Whether organizations pay for the service, with Stripe (docs/billing.md). If so, new ones have the tier free unless DEFAULT_TIER says otherwise, and a daily cap on the shared domain.',
    false,
  ),
  STRIPE_SECRET_KEY: optionalText(
    'Secret or restricted key of the Stripe account; required with BILLING_ENABLED.',
  ),
  STRIPE_WEBHOOK_SECRET: optionalText(
    'Signing secret of the webhook endpoint PUBLIC_URL/billing/webhook at Stripe; required with BILLING_ENABLED. To rotate, several separated by commas.',
  ),
  STRIPE_API_BASE: text('URL of the Stripe API.', 'https://api.stripe.com'),
  STRIPE_TIMEOUT_MS: integer('Timeout of a request to Stripe; it is tried twice.', 10_000, 100, 60_000),
  STRIPE_PRICES_DEVELOPER: optionalText(
    'Comma-separated ids of the recurring prices of the tier developer: the first is sold, the others are recognized.',
  ),
  STRIPE_PRICES_BUSINESS: optionalText('The same for the tier business.'),
  STRIPE_PRICES_ENTERPRISE: optionalText('The same for the tier enterprise.'),
  STRIPE_METERED_PRICES: optionalText(
    'What use beyond a soft limit costs: comma-separated counter:price, with the ids of metered prices, for example messages_sent:price_123. New subscriptions get the first price of each counter. Empty bills no use.',
  ),
  BILLING_REDIRECT_ORIGINS: optionalText(
    'Comma-separated origins (https://app.example.com) to which Stripe may send people back after a checkout; empty means that of PUBLIC_URL.',
  ),
  PAYMENT_GRACE_DAYS: integer(
    'Days between a failed payment and the suspension of the organization.',
    15,
    1,
    90,
  ),
  SHARED_DOMAIN_DAILY_CAP: integer(
    'Recipients to whom a new organization may send in a day (UTC) from the shared domain; doubles after each day of sending below the reputation limits. Only with BILLING_ENABLED.',
    100,
    1,
    1_000_000,
  ),

  WEBHOOK_TIMEOUT_MS: integer('Timeout of a webhook request.', 15_000, 100, 60_000),
  EVENT_RETENTION_DAYS: integer(
    'Days for which events and their deliveries are stored and can be replayed; a delivery is attempted for up to two days.',
    30,
    3,
    3_650,
  ),
  EGRESS_ALLOW: optionalText(
    'Comma-separated private CIDRs that webhooks and requests to identity providers may reach.',
  ),
  EGRESS_ALLOW_PORTS: optionalText(
    'Comma-separated additional ports that webhooks and requests to identity providers may use; `*` means any. Those that browsers refuse for HTTP, such as 25, stay closed.',
  ),

  SCHEDULES_ENABLED: flag('Whether the maintenance worker creates and updates the Temporal schedules.', true),
  INBOUND_CONCURRENCY: integer(
    'Received messages that a worker processes at the same time. With more, a flood of them delays sends; raise it where DNS or rspamd are slow.',
    3,
    1,
    100,
  ),
  WORKER_CONCURRENCY: integer('Maximum concurrent activities per worker and task queue.', 50, 1, 1000),
  WORKER_HEALTH_HOST: text('Address of a worker’s health checks and metrics.', '127.0.0.1'),
  WORKER_HEALTH_PORT: integer('Port of a worker’s health checks and metrics; 0 means none.', 0, 0, 65_535),
});

export type Config = Readonly<Static<typeof ConfigSchema>>;

/**
 * Reads and freezes the configuration of this process.
 *
 * @throws Error with every missing or invalid variable, one per line.
 */
export function loadConfig(environment: NodeJS.ProcessEnv = process.env): Config {
  const values: Record<string, unknown> = {};
  const problems: string[] = [];
  for (const [name, property] of Object.entries(ConfigSchema.properties)) {
    const value = environment[name];
    if (value === undefined || value === '') continue;
    values[name] = parseValue(property as { type?: string }, value);
  }
  // A tier without limits, the default of a self-hosted service, would leave nothing to sell.
  if (values.BILLING_ENABLED === true) values.DEFAULT_TIER ??= 'free';
  const candidate = Value.Default(ConfigSchema, values);
  for (const error of Value.Errors(ConfigSchema, candidate)) {
    const missing = (error.params as { requiredProperties?: string[] }).requiredProperties;
    if (missing) problems.push(...missing.map((name) => `${name} is required: ${describe(name)}`));
    else problems.push(`${error.instancePath.slice(1)} ${error.message}`);
  }
  if (values.BILLING_ENABLED === true) problems.push(...findBillingProblems(values));
  problems.push(...findRangeProblems(values));
  if (problems.length > 0) throw new Error(`Invalid configuration:\n  ${problems.join('\n  ')}`);
  return Object.freeze(candidate as Static<typeof ConfigSchema>);
}

/** What another program that the service starts needs of this process's environment: none of its settings. */
export function programEnvironment(environment: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  const { PATH, HOME, LANG, LD_LIBRARY_PATH } = environment;
  return { PATH, HOME, LANG, LD_LIBRARY_PATH };
}

function findBillingProblems(values: Record<string, unknown>): string[] {
  const missing = ['STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET'].filter((name) => values[name] === undefined);
  const hasPrice = ['DEVELOPER', 'BUSINESS', 'ENTERPRISE'].some((tier) => values[`STRIPE_PRICES_${tier}`]);
  return [
    ...missing.map((name) => `${name} is required with BILLING_ENABLED: ${describe(name)}`),
    ...(hasPrice
      ? []
      : ['STRIPE_PRICES_DEVELOPER or another tier’s prices are required with BILLING_ENABLED']),
  ];
}

/** Names of ranges that `proxy-addr` knows, which Fastify uses. */
const PROXY_RANGES = ['loopback', 'linklocal', 'uniquelocal'];

function findRangeProblems(values: Record<string, unknown>): string[] {
  const listed = (name: string) =>
    typeof values[name] === 'string' ? values[name].split(',').map((range) => range.trim()) : [];
  const trusted = listed('TRUST_PROXY').filter((range) => !PROXY_RANGES.includes(range) && !isCidr(range));
  const allowed = listed('EGRESS_ALLOW').filter((range) => range !== '' && !isCidr(range));
  return [
    ...trusted.map((range) => `TRUST_PROXY: ${JSON.stringify(range)} is not an address or CIDR`),
    ...allowed.map((range) => `EGRESS_ALLOW: ${JSON.stringify(range)} is not a CIDR`),
  ];
}

function parseValue(property: { type?: string }, value: string): unknown {
  if (property.type === 'integer') return /^-?\d+$/.test(value.trim()) ? Number(value) : value;
  if (property.type === 'number') return /^\d*\.?\d+$/.test(value.trim()) ? Number(value) : value;
  if (property.type !== 'boolean') return value;
  if (/^(true|yes|on|1)$/i.test(value)) return true;
  if (/^(false|no|off|0)$/i.test(value)) return false;
  return value;
}

function describe(name: string): string {
  const property = (ConfigSchema.properties as Record<string, { description?: string }>)[name];
  return property?.description ?? '';
}

/** Host in the MX record of custom domains. */
export function inboundMxHost(
  config: Pick<Config, 'INBOUND_MX_HOST' | 'INBOUND_SMTP_HOSTNAME' | 'MAIL_DOMAIN'>,
): string {
  return config.INBOUND_MX_HOST ?? config.INBOUND_SMTP_HOSTNAME ?? config.MAIL_DOMAIN;
}

/** SPF mechanism in the record of custom domains. */
export function spfMechanism(
  config: Pick<Config, 'SPF_MECHANISM' | 'BOUNCE_DOMAIN' | 'MAIL_DOMAIN'>,
): string {
  return config.SPF_MECHANISM ?? `include:${bounceDomain(config)}`;
}

/** Domain of return paths. */
export function bounceDomain(config: Pick<Config, 'BOUNCE_DOMAIN' | 'MAIL_DOMAIN'>): string {
  return config.BOUNCE_DOMAIN ?? `bounces.${config.MAIL_DOMAIN}`;
}

/** Address for complaints, in lower case. */
export function feedbackAddress(
  config: Pick<Config, 'FEEDBACK_ADDRESS' | 'BOUNCE_DOMAIN' | 'MAIL_DOMAIN'>,
): string {
  return (config.FEEDBACK_ADDRESS ?? `complaints@${bounceDomain(config)}`).toLowerCase();
}

/** From address of the service's own emails. */
export function systemMailFrom(config: Pick<Config, 'SYSTEM_MAIL_FROM' | 'MAIL_DOMAIN'>): string {
  return config.SYSTEM_MAIL_FROM ?? `no-reply@${config.MAIL_DOMAIN}`;
}

/** Whether providers deliver mail or reports to the API, or Stripe its events. */
export function acceptsProviderDeliveries(
  config: Pick<Config, 'PROVIDER_RAW_SECRET' | 'SES_TOPIC_ARNS' | 'BILLING_ENABLED'>,
): boolean {
  return (
    config.PROVIDER_RAW_SECRET !== undefined || config.SES_TOPIC_ARNS !== undefined || config.BILLING_ENABLED
  );
}

/** The parts of a setting that is a list, separated by commas. */
export function splitList(setting = ''): string[] {
  return setting.split(',').flatMap((item) => item.trim() || []);
}
