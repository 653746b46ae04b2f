import type { OutsideParts } from './outside-parts.ts';
import type { DevSettings } from './settings.ts';

/** The facts of a running stack for programs and tests: `.data/first-run.json`. */
export interface FirstRun {
  base_url: string;
  /** Every permission of the first organization. */
  api_key: string;
  /** What an agent gets, bound to the production environment. */
  agent_key: string;
  owner: { email: string; password: string };
  org_id: string;
  env_id: string;
  inbound_smtp: { host: string; port: number };
  relay_smtp: { host: string; port: number };
  /** STARTTLS with a certificate nobody signed; user and password are an inbox's (`…/credentials/rotate`). */
  submission_smtp: { host: string; port: number };
  temporal_address: string;
  /** Null where the Temporal server was there before. */
  temporal_ui: string | null;
  mail_ui: string;
  /** As the owner of the schema. */
  database_url: string;
}

export function describeFirstRun({ ports }: DevSettings, parts: OutsideParts): FirstRun {
  const { seed } = parts;
  return {
    base_url: `http://127.0.0.1:${ports.api}`,
    api_key: seed.apiKey,
    agent_key: seed.agentKey,
    owner: { email: seed.ownerEmail, password: seed.ownerPassword },
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

/** What a person sees when everything answers. */
export function closingTable(facts: FirstRun, files: { firstRun: string; logs: string }): string {
  const rows = [
    ['API', `${facts.base_url}/api/v1`],
    ['API docs', `${facts.base_url}/docs`],
    ['Temporal UI', facts.temporal_ui ?? `of the server at ${facts.temporal_address}`],
    ['Mail UI', facts.mail_ui],
    ['Inbound SMTP', `${facts.inbound_smtp.host}:${facts.inbound_smtp.port}`],
    ['Submission', `${facts.submission_smtp.host}:${facts.submission_smtp.port}`],
    ['Owner', `${facts.owner.email}  ${facts.owner.password}`],
    ['API key', facts.api_key],
  ];
  const lines = rows.map(([name = '', value]) => `  ${name.padEnd(14)}${value}`);
  return [
    '',
    ...lines,
    '',
    'Make an inbox:',
    '',
    `  ${createInboxCommand(facts)}`,
    '',
    `The same for programs: ${files.firstRun}   Logs: ${files.logs}   Ctrl-C stops everything.`,
    '',
  ].join('\n');
}

/** Pasted twice it answers with the same inbox: the `client_id` says so. */
export function createInboxCommand({ base_url, api_key }: FirstRun): string {
  const body = JSON.stringify({ username: 'first-agent', client_id: 'first-inbox' });
  return `curl -sS ${base_url}/api/v1/inboxes -H 'Authorization: Bearer ${api_key}' -H 'Content-Type: application/json' -d '${body}'`;
}
