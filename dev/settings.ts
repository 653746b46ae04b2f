import { join, resolve } from 'node:path';
import { findFreePort, type RequiredPort } from './stack/ports.ts';

/** The mail domain of `npm start`, reserved by RFC 2606. */
const MAIL_DOMAIN = 'agents.example';

export interface DevSettings {
  /** All data of `npm start`. */
  dataDir: string;
  cacheDir: string;
  ports: {
    api: number;
    inboundSmtp: number;
    submissionSmtp: number;
    relay: number;
    postgres: number;
    s3: number;
    temporal: number;
    temporalUi: number;
    mailUi: number;
    workerHealth: number;
    stripe: number;
  };
  /** Billing without a key of Stripe: a stand-in runs. */
  hasStripeStandIn: boolean;
  /** A Temporal server that is already running; undefined starts one. */
  temporalAddress: string | undefined;
  mailDomain: string;
  bounceDomain: string;
  ownerEmail: string;
  /** The staff member of the console at `/admin`. */
  staffEmail: string;
  /** The caller's environment, passed to the started processes. The stack's settings take precedence. */
  environment: NodeJS.ProcessEnv;
}

const PORTS: Record<keyof DevSettings['ports'], { variable: string; fallback: number; purpose: string }> = {
  api: { variable: 'API_PORT', fallback: 3000, purpose: 'API' },
  inboundSmtp: { variable: 'INBOUND_SMTP_PORT', fallback: 2526, purpose: 'inbound SMTP' },
  submissionSmtp: { variable: 'SUBMISSION_SMTP_PORT', fallback: 2587, purpose: 'SMTP submission' },
  relay: { variable: 'SMTP_RELAY_PORT', fallback: 2525, purpose: 'mail relay' },
  postgres: { variable: 'DEV_POSTGRES_PORT', fallback: 54_329, purpose: 'PostgreSQL' },
  s3: { variable: 'DEV_S3_PORT', fallback: 4568, purpose: 'S3 server' },
  temporal: { variable: 'DEV_TEMPORAL_PORT', fallback: 7233, purpose: 'Temporal' },
  temporalUi: { variable: 'DEV_TEMPORAL_UI_PORT', fallback: 8233, purpose: 'Temporal UI' },
  mailUi: { variable: 'DEV_MAIL_UI_PORT', fallback: 1080, purpose: 'mail UI' },
  workerHealth: { variable: 'WORKER_HEALTH_PORT', fallback: 3001, purpose: 'health checks of the workers' },
  stripe: { variable: 'DEV_STRIPE_PORT', fallback: 12_111, purpose: 'stand-in for Stripe' },
};

/** @throws Error naming a variable that is not a port. */
export function readDevSettings(environment: NodeJS.ProcessEnv): DevSettings {
  const root = resolve(import.meta.dirname, '..');
  const mailDomain = environment.MAIL_DOMAIN || MAIL_DOMAIN;
  const names = Object.keys(PORTS) as (keyof DevSettings['ports'])[];
  return {
    dataDir: resolve(root, environment.DEV_DATA_DIR || '.data'),
    cacheDir: join(root, '.cache', 'temporal'),
    ports: Object.fromEntries(
      names.map((name) => [name, readPort(environment, name)]),
    ) as DevSettings['ports'],
    hasStripeStandIn:
      /^(true|yes|on|1)$/i.test(environment.BILLING_ENABLED ?? '') && !environment.STRIPE_SECRET_KEY,
    temporalAddress: environment.TEMPORAL_ADDRESS || undefined,
    mailDomain,
    bounceDomain: environment.BOUNCE_DOMAIN || `bounces.${mailDomain}`,
    // Outside the service's domains, so that emails to the owner show up in the mail UI.
    ownerEmail: environment.DEV_OWNER_EMAIL || 'owner@people.example',
    staffEmail: environment.DEV_STAFF_EMAIL || 'staff@people.example',
    environment,
  };
}

/** The ports that a start requires, with the variable that changes each. */
export function requiredPorts({ ports, temporalAddress, hasStripeStandIn }: DevSettings): RequiredPort[] {
  const skipped = [
    ...(temporalAddress ? ['temporal', 'temporalUi'] : []),
    ...(hasStripeStandIn ? [] : ['stripe']),
  ];
  return Object.entries(PORTS)
    .filter(([name]) => !skipped.includes(name))
    .map(([name, { variable, purpose }]) => ({
      port: ports[name as keyof DevSettings['ports']],
      variable,
      purpose,
    }));
}

/** Variables with free ports for a stack that runs next to another one: for tests and the bench. */
export async function freePortVariables(): Promise<
  Record<keyof DevSettings['ports'], string> & NodeJS.ProcessEnv
> {
  const variables: Record<string, string> = {};
  const found = new Set<number>();
  for (const [name, { variable }] of Object.entries(PORTS)) {
    let port = await findFreePort();
    // A port is free until something listens on it, so it may be found twice.
    while (found.has(port)) port = await findFreePort();
    found.add(port);
    variables[name] = String(port);
    variables[variable] = variables[name];
  }
  return variables as Record<keyof DevSettings['ports'], string>;
}

function readPort(environment: NodeJS.ProcessEnv, name: keyof DevSettings['ports']): number {
  const { variable, fallback } = PORTS[name];
  const given = environment[variable];
  if (!given) return fallback;
  const port = Number(given);
  if (!Number.isInteger(port) || port < 1 || port > 65_535)
    throw new Error(`${variable} must be a port between 1 and 65535, not ${JSON.stringify(given)}`);
  return port;
}
