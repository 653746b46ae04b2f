import { classify } from '../classify.ts';
import { CliError, EXIT } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { type Credential, findCredential } from '../profiles/credential.ts';
import type { AgentEmail, Credential as Caller } from '../sdk.ts';
import { sessionOf } from '../session.ts';
import { formatTable } from '../terminal/table.ts';
import { VERSION } from '../version.ts';

type Result = 'ok' | 'warning' | 'failed' | 'skipped';

interface Check {
  name: string;
  result: Result;
  detail: string;
  fix?: string | undefined;
}

const TIMEOUT_MS = 15_000;
const API_VERSION = '1';
/** Receivers of webhooks reject signatures that are older than five minutes. */
const MAX_SKEW_SECONDS = 300;
const NOTED_SKEW_SECONDS = 30;
/** What the commands need. */
const WANTED = [
  'inboxes:read',
  'messages:read',
  'messages:send',
  'drafts:read',
  'drafts:write',
  'events:read',
];

const ok = (name: string, detail: string): Check => ({ name, result: 'ok', detail });
const skipped = (name: string, detail: string): Check => ({ name, result: 'skipped', detail });
const warning = (name: string, detail: string, fix?: string): Check => ({
  name,
  result: 'warning',
  detail,
  fix,
});
const failed = (name: string, detail: string, fix?: string): Check => ({
  name,
  result: 'failed',
  detail,
  fix,
});

/** Looks for what is wrong, from the outside in: a check that needs what failed before it is left out. */
export async function doctor(context: Context): Promise<void> {
  const checks: Check[] = [ok('cli', `agent-email ${VERSION} on Node ${process.versions.node}`)];
  let isCredential = false;
  try {
    const credential = await findCredential(context.env, context.globals);
    checks.push(...(await checkService(credential)));
    if (checks.every(({ result }) => result !== 'failed')) {
      const { client } = await sessionOf(credential, context.globals.env);
      checks.push(...(await checkCredential(client)));
    }
  } catch (error) {
    const { message, fix, exitCode } = classify(error);
    isCredential = exitCode === EXIT.credential;
    checks.push(failed('credential', message, fix));
  }
  show(context, checks);
  const failures = checks.filter(({ result }) => result === 'failed').length;
  if (failures === 0) return;
  throw new CliError(`${failures} of ${checks.length} checks failed.`, {
    exitCode: isCredential ? EXIT.credential : EXIT.api,
    code: 'checks_failed',
  });
}

function show({ output }: Context, checks: readonly Check[]): void {
  output.answer(checks, () =>
    formatTable(
      checks,
      [
        { title: 'CHECK', value: ({ name }) => name },
        { title: 'RESULT', value: ({ result }) => result },
        { title: 'DETAIL', value: ({ detail, fix }) => [detail, fix].filter(Boolean).join(' ') },
      ],
      output.width,
    ),
  );
}

/** Address, TLS, version and clock: what needs no credential. */
async function checkService({ baseUrl }: Credential): Promise<Check[]> {
  const url = new URL(`${baseUrl}/openapi/agent.json`);
  const response = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(
    (error: unknown) => connectionCheck(url, error),
  );
  if (!(response instanceof Response)) return [response];
  const document = (await response.json().catch(() => undefined)) as
    | { info?: { version?: string } }
    | undefined;
  const { info } = document ?? {};
  if (response.status >= 300 && response.status < 400)
    return [
      failed(
        'address',
        `${baseUrl} sends requests on to ${response.headers.get('location') ?? 'another address'}.`,
        'Log in with the address of the service itself.',
      ),
    ];
  if (!response.ok || info?.version === undefined)
    return [
      failed(
        'address',
        `${baseUrl} answers (${response.status}), but not as this service does.`,
        'Check the address: it is PUBLIC_URL of the service.',
      ),
    ];
  return [
    ok('address', baseUrl),
    url.protocol === 'https:'
      ? ok('tls', 'The certificate is valid.')
      : skipped('tls', 'Plain http on this computer.'),
    info.version === API_VERSION
      ? ok('version', `The API has version ${info.version}.`)
      : warning(
          'version',
          `The API has version ${info.version}, and this program was made for ${API_VERSION}.`,
          'Update agent-email-cli.',
        ),
    checkClock(response.headers.get('date')),
  ];
}

function connectionCheck({ host }: URL, error: unknown): Check {
  const { cause, name, message } = error as Error & { cause?: NodeJS.ErrnoException };
  const code = cause?.code ?? name;
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return failed(
      'address',
      `The name ${host} is not known (${code}).`,
      'Check the spelling of the address, and DNS.',
    );
  if (code === 'ECONNREFUSED')
    return failed('address', `Nothing listens at ${host}.`, 'Start the service, or check the port.');
  if (code === 'TimeoutError')
    return failed(
      'address',
      `${host} did not answer within ${TIMEOUT_MS / 1_000} s.`,
      'Check firewalls and proxies.',
    );
  if (/CERT|SELF_SIGNED|TLS|SSL|VERIFY|ISSUER/.test(code))
    return failed(
      'tls',
      `The certificate of ${host} is not valid (${code}).`,
      'Renew it. For an authority of your own, set NODE_EXTRA_CA_CERTS.',
    );
  return failed('address', `${host} cannot be reached (${code}): ${cause?.message ?? message}.`);
}

function checkClock(date: string | null): Check {
  const seconds = Math.round((Date.now() - Date.parse(date ?? '')) / 1_000);
  if (Number.isNaN(seconds)) return skipped('clock', 'The service does not say the time.');
  const detail = `This computer is ${Math.abs(seconds)} s ${seconds < 0 ? 'behind' : 'ahead of'} the service.`;
  const fix = 'Set the clock, for example by NTP.';
  if (Math.abs(seconds) > MAX_SKEW_SECONDS) return failed('clock', detail, fix);
  if (Math.abs(seconds) > NOTED_SKEW_SECONDS) return warning('clock', detail, fix);
  return ok('clock', detail);
}

async function checkCredential(client: AgentEmail): Promise<Check[]> {
  const caller = await client.me.get();
  return [
    ok('credential', `${caller.id} (${caller.kind}) of ${caller.org_id ?? 'no organization'}`),
    checkPermissions(caller),
    checkSends(caller),
    ...(await Promise.all([checkDomains(client, caller), checkEndpoints(client, caller)])),
  ];
}

function checkPermissions({ permissions, suspended }: Caller): Check {
  if (suspended !== null)
    return failed('permissions', `It can change nothing: ${suspended}.`, 'Ask an owner of the organization.');
  const missing = WANTED.filter((name) => !permissions.includes(name));
  return missing.length === 0
    ? ok('permissions', 'All that the commands need.')
    : warning(
        'permissions',
        `Without ${missing.join(', ')} some commands fail.`,
        'Use another key, or allow more at login.',
      );
}

function checkSends({ sends, is_sandbox }: Caller): Check {
  if (is_sandbox) return warning('sends', 'The environment is a sandbox: nothing leaves the service.');
  const { today, this_month: month } = sends ?? {};
  const spent = [today, month].find((period) => period?.remaining === 0);
  return spent
    ? failed(
        'sends',
        'Nothing may be sent any more.',
        `Wait until ${spent.resets_at}, or ask for a higher limit.`,
      )
    : ok('sends', `Left today: ${today?.remaining ?? 'no cap'}.`);
}

async function checkDomains(client: AgentEmail, { permissions }: Caller): Promise<Check> {
  if (!permissions.includes('domains:read')) return skipped('domains', 'It may not see domains.');
  const { data } = await client.domains.list({ limit: 100 });
  const open = data.filter(({ verification_status: status }) => status !== 'verified');
  if (open.length === 0)
    return ok('domains', data.length === 0 ? 'None of your own.' : `${data.length} verified.`);
  const names = open.map(({ domain_name, verification_status, status_reason }) =>
    [`${domain_name} is ${verification_status}`, status_reason?.replace(/\.$/, '')]
      .filter(Boolean)
      .join(': '),
  );
  return failed('domains', `${names.join('; ')}.`, 'Check its DNS records.');
}

async function checkEndpoints(client: AgentEmail, { permissions }: Caller): Promise<Check> {
  if (!permissions.includes('webhooks:read')) return skipped('webhooks', 'It may not see webhook endpoints.');
  const { data } = await client.webhookEndpoints.list({ limit: 100 });
  const bad = data.filter(({ disabled, failing }) => disabled || failing);
  if (bad.length === 0) return ok('webhooks', data.length === 0 ? 'No endpoints.' : `${data.length} work.`);
  const names = bad.map(
    ({ url, disabled, disabled_reason, failing_since, held_deliveries }) =>
      `${url} ${disabled ? `is disabled (${disabled_reason ?? 'by you'})` : `fails since ${failing_since}, and ${held_deliveries} deliveries wait`}`,
  );
  return failed(
    'webhooks',
    `${names.join('; ')}.`,
    'Repair the receiver. Then enable the endpoint, or retry a delivery.',
  );
}
