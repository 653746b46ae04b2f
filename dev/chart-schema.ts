import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ConfigSchema } from '../platform/config.ts';

export const CHART = fileURLToPath(new URL('../charts/agent-email', import.meta.url));
const VALUES_SCHEMA = `${CHART}/values.schema.json`;

/** Settings that the chart takes from a Secret. */
export const SECRET_SETTINGS = [
  'API_DATABASE_URL',
  'WORKER_DATABASE_URL',
  'MIGRATION_DATABASE_URL',
  'SIGNALS_DATABASE_URL',
  'ENCRYPTION_KEY',
  'SIGNING_KEY',
  'METRICS_TOKEN',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
  'TEMPORAL_API_KEY',
  'SMTP_RELAY_USER',
  'SMTP_RELAY_PASSWORD',
  'SES_ACCESS_KEY_ID',
  'SES_SECRET_ACCESS_KEY',
  'OTEL_EXPORTER_OTLP_HEADERS',
  'STRIPE_SECRET_KEY',
  'STRIPE_WEBHOOK_SECRET',
  'OAUTH_GOOGLE_CLIENT_SECRET',
  'OAUTH_GITHUB_CLIENT_SECRET',
  'OAUTH_OIDC_PROVIDERS',
  'PROVIDER_RAW_SECRET',
];

/** Settings that the chart's templates set: ports, addresses and the paths of mounted files. */
export const TEMPLATE_SETTINGS = [
  'NODE_ENV',
  'DATABASE_URL',
  'API_HOST',
  'API_PORT',
  'WORKER_HEALTH_HOST',
  'WORKER_HEALTH_PORT',
  'TEMPORAL_METRICS_ADDRESS',
  'INBOUND_SMTP_HOST',
  'INBOUND_SMTP_PORT',
  'INBOUND_SMTP_TLS_KEY_FILE',
  'INBOUND_SMTP_TLS_CERT_FILE',
  'SUBMISSION_SMTP_HOST',
  'SUBMISSION_SMTP_PORT',
  'SUBMISSION_SMTP_TLS_PORT',
  'SUBMISSION_SMTP_PUBLIC_PORT',
  'SUBMISSION_SMTP_TLS_KEY_FILE',
  'SUBMISSION_SMTP_TLS_CERT_FILE',
  'DKIM_SHARED_PRIVATE_KEY_FILE',
  'SMTP_RELAY_TLS_CA_FILE',
];

export interface ValuesSchema {
  definitions: { settings: { properties: Record<string, object> } };
}

export const readValuesSchema = (): ValuesSchema => JSON.parse(readFileSync(VALUES_SCHEMA, 'utf8'));

/** JSON Schema of the settings that values may set, from `platform/config.ts`. */
export function renderSettings(): Record<string, object> {
  const others = new Set([...SECRET_SETTINGS, ...TEMPLATE_SETTINGS]);
  const properties = Object.entries(ConfigSchema.properties as Record<string, object>);
  return Object.fromEntries(
    properties
      .filter(([name]) => !others.has(name))
      .map(([name, property]) => [name, selectKeywords(property)]),
  );
}

function selectKeywords(schema: object): object {
  const property = schema as Record<string, unknown>;
  const keywords = ['description', 'type', 'enum', 'minLength', 'minimum', 'maximum', 'default'];
  return Object.fromEntries(
    keywords
      .filter((keyword) => property[keyword] !== undefined && property[keyword] !== Number.MAX_SAFE_INTEGER)
      .map((keyword) => [keyword, property[keyword]]),
  );
}

/** Writes the settings into the schema of the values; the rest of it is edited by hand. */
export function updateValuesSchema(): void {
  const schema = readValuesSchema();
  schema.definitions.settings.properties = renderSettings();
  writeFileSync(VALUES_SCHEMA, `${JSON.stringify(schema, null, 2)}\n`);
}

if (import.meta.main) updateValuesSchema();
