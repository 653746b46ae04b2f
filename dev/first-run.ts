import type { Dependencies } from './dependencies.ts';
import type { DevSettings } from './settings.ts';

/** Addresses and credentials of a running stack, for programs and tests: `.data/first-run.json`. */
export interface FirstRun {
  base_url: string;
  /** Has every permission in the first organization. */
  api_key: string;
  /** Has an agent's permissions, bound to the production environment. */
  agent_key: string;
  owner: { email: string; password: string };
  /** Staff of the service, with an enrolled authenticator app (base32 secret, RFC 6238). */
  staff: { email: string; password: string; totp_secret: string };
  /** The page where people sign in. */
  sign_in_url: string;
  /** METRICS_TOKEN: for `GET /metrics` of the API and the workers. */
  metrics_token: string;
  org_id: string;
  env_id: string;
  inbound_smtp: { host: string; port: number };
  relay_smtp: { host: string; port: number };
  /** STARTTLS with a self-signed certificate. User and password belong to an inbox (`…/credentials/rotate`). */
  submission_smtp: { host: string; port: number };
  temporal_address: string;
  /** Null if the Temporal server was not started by this stack. */
  temporal_ui: string | null;
  mail_ui: string;
  /** Connects as the owner of the schema. */
  database_url: string;
}

export function describeFirstRun(
  { ports }: DevSettings,
  parts: Dependencies,
  metricsToken: string,
): FirstRun {
  const { seed } = parts;
  return {
    base_url: `http://127.0.0.1:${ports.api}`,
    api_key: seed.apiKey,
    agent_key: seed.agentKey,
    owner: { email: seed.ownerEmail, password: seed.ownerPassword },
    staff: {
      email: seed.staff.email,
      password: seed.staff.password ?? '',
      totp_secret: seed.staff.totpSecret ?? '',
    },
    sign_in_url: `http://localhost:${ports.api}/login`,
    metrics_token: metricsToken,
    org_id: seed.organizationId,
    env_id: seed.productionEnvironmentId,
    inbound_smtp: { host: '127.0.0.1', port: ports.inboundSmtp },
    relay_smtp: { host: '127.0.0.1', port: ports.relay },
    submission_smtp: { host: '127.0.0.1', port: ports.submissionSmtp },
    temporal_address: parts.temporal.address,
    temporal_ui: parts.temporal.uiUrl ?? null,
    mail_ui: parts.mailUiUrl,
    database_url: parts.databaseUrls.owner,
  };
}

/** Printed once every service is ready. */
export function closingTable(facts: FirstRun, files: { firstRun: string; logs: string }): string {
  const rows = [
    ['API', `${facts.base_url}/api/v1`],
    ['API docs', `${facts.base_url}/docs`],
    // Hosts that sign in insist on the address that the metadata names: that of PUBLIC_URL, as of the page.
    ['MCP', new URL('/mcp', facts.sign_in_url).href],
    ['Temporal UI', facts.temporal_ui ?? `see the server at ${facts.temporal_address}`],
    ['Mail UI', facts.mail_ui],
    ['Inbound SMTP', `${facts.inbound_smtp.host}:${facts.inbound_smtp.port}`],
    ['Submission', `${facts.submission_smtp.host}:${facts.submission_smtp.port}`],
    ['Console', new URL('/', facts.sign_in_url).href],
    ['as owner', `${facts.owner.email}  ${facts.owner.password}`],
    ['as staff', `${facts.staff.email}  ${facts.staff.password}  TOTP ${facts.staff.totp_secret}`],
    ['API key', facts.api_key],
    ['Metrics', `${facts.base_url}/metrics  ${facts.metrics_token}`],
  ];
  const lines = rows.map(([name = '', value]) => `  ${name.padEnd(14)}${value}`);
  return [
    '',
    ...lines,
    '',
    'Create an inbox:',
    '',
    `  ${createInboxCommand(facts)}`,
    '',
    `As JSON: ${files.firstRun}   Logs: ${files.logs}   Ctrl-C stops everything.`,
    '',
  ].join('\n');
}

/** Running it twice returns the same inbox because of `client_id`. */
export function createInboxCommand({ base_url, api_key }: FirstRun): string {
  const body = JSON.stringify({ username: 'first-agent', client_id: 'first-inbox' });
  return `curl -sS ${base_url}/api/v1/inboxes -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' -d '${body}'`;
}
