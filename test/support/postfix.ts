import { execFile } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { acceptsConnections } from '../../dev/stack/ports.ts';
import { eventually } from './eventually.ts';

/** Paths on Debian; `/usr/sbin` may not be on PATH. */
const POSTFIX = '/usr/sbin/postfix';
const SENDMAIL = '/usr/sbin/sendmail';
const DAEMONS = '/usr/lib/postfix/sbin';
const START_TIMEOUT_MS = 20_000;
const STOP_TIMEOUT_MS = 15_000;

const run = promisify(execFile);

/** @returns why Postfix cannot be started on this machine; null if it can. */
export function findPostfixObstacle(): string | null {
  if (!existsSync(POSTFIX) || !existsSync(join(DAEMONS, 'master')))
    return 'postfix is not installed (apt-get install postfix)';
  return process.getuid?.() === 0 ? null : 'postfix starts as root alone';
}

export interface PostfixOptions {
  port: number;
  /** Domain of the mailboxes. Other addresses in it are accepted and bounced later. */
  mailboxDomain: string;
  /** Local parts. */
  mailboxes: string[];
  /** Address → the reply to RCPT, e.g. `550 5.1.1 no such user`. */
  refusals: Record<string, string>;
  /** Address → a transport and next hop (transport(5)), e.g. `retry:4.2.1 mailbox busy`. */
  routes: Record<string, string>;
  /** Domains whose mail is forwarded to a listener on 127.0.0.1. */
  passedOn: { domains: string[]; port: number };
}

/** A separate Postfix in its own folder. It neither reads nor changes the system's Postfix. */
export interface Postfix {
  /** The messages in a mailbox, oldest first, with Postfix's trace fields and bare line feeds. */
  mails(mailbox: string): Buffer[];
  /** Submits a message with `sendmail`. */
  submit(envelope: { from: string; to: string }, raw: string): Promise<void>;
  log(): string;
  /** Stops all its processes and deletes the folder. */
  stop(): Promise<void>;
}

export async function startPostfix(options: PostfixOptions): Promise<Postfix> {
  const directory = mkdtempSync(join(tmpdir(), 'agent-email-postfix-'));
  const configuration = join(directory, 'etc');
  const logFile = join(directory, 'maillog');
  const log = () => (existsSync(logFile) ? readFileSync(logFile, 'utf8') : '');
  const stop = async () => {
    if (existsSync(join(directory, 'queue', 'pid', 'master.pid')))
      await run(POSTFIX, ['-c', configuration, 'stop'], { timeout: STOP_TIMEOUT_MS });
    rmSync(directory, { recursive: true, force: true });
  };
  try {
    await prepare(directory, options);
    await run(POSTFIX, ['-c', configuration, 'start'], { timeout: START_TIMEOUT_MS });
    await eventually(async () => {
      if (!(await acceptsConnections(options.port))) throw new Error('Postfix does not accept connections');
    }, START_TIMEOUT_MS);
  } catch (error) {
    const said = log();
    await stop();
    throw new Error(`Postfix did not start: ${said}`, { cause: error });
  }
  return {
    mails: (mailbox) => readMaildir(join(directory, 'mail', mailbox, 'new')),
    async submit({ from, to }, raw) {
      const sending = run(SENDMAIL, ['-C', configuration, '-i', '-f', from, to]);
      sending.child.stdin?.end(raw);
      await sending;
    },
    log,
    stop,
  };
}

async function prepare(directory: string, options: PostfixOptions): Promise<void> {
  // Its daemons run as other users, who must be able to enter the folder.
  await chmod(directory, 0o755);
  const owners = { nobody: await userId('nobody'), postfix: await userId('postfix') };
  for (const name of ['etc', 'queue', 'data', 'mail']) mkdirSync(join(directory, name));
  chownSync(join(directory, 'data'), owners.postfix, -1);
  chownSync(join(directory, 'mail'), owners.nobody, -1);
  const settings = mainSettings(directory, options, owners.nobody);
  const main = Object.entries(settings).map(([name, value]) => `${name} = ${value}\n`);
  await writeFile(join(directory, 'etc', 'main.cf'), main.join(''));
  await writeFile(join(directory, 'etc', 'master.cf'), masterTable(options.port));
}

async function userId(name: string): Promise<number> {
  return Number((await run('id', ['-u', name])).stdout);
}

function mainSettings(directory: string, options: PostfixOptions, mailOwner: number): Record<string, string> {
  const { mailboxDomain, mailboxes, passedOn, refusals, routes } = options;
  const passing = passedOn.domains.map((domain) => [domain, `smtp:[127.0.0.1]:${passedOn.port}`]);
  return {
    compatibility_level: '3.6',
    queue_directory: join(directory, 'queue'),
    data_directory: join(directory, 'data'),
    daemon_directory: DAEMONS,
    maillog_file: join(directory, 'maillog'),
    maillog_file_prefixes: directory,
    myhostname: 'postfix.example',
    mydestination: '',
    alias_maps: '',
    local_recipient_maps: '',
    inet_interfaces: '127.0.0.1',
    inet_protocols: 'ipv4',
    mynetworks: '127.0.0.0/8',
    virtual_mailbox_domains: mailboxDomain,
    virtual_mailbox_base: join(directory, 'mail'),
    virtual_mailbox_maps: inlineTable(
      mailboxes.map((mailbox) => [`${mailbox}@${mailboxDomain}`, `${mailbox}/`]),
    ),
    virtual_uid_maps: `static:${mailOwner}`,
    virtual_gid_maps: `static:${mailOwner}`,
    transport_maps: inlineTable([...passing, ...Object.entries(routes)]),
    smtpd_recipient_restrictions: `check_recipient_access ${inlineTable(Object.entries(refusals))}, permit_mynetworks, reject`,
    // Unknown mailboxes bounce after 250, as with a relay that does not know its customers' users.
    smtpd_reject_unlisted_recipient: 'no',
    // Seconds instead of hours, so that undeliverable mail bounces during the test.
    queue_run_delay: '1s',
    minimal_backoff_time: '1s',
    maximal_backoff_time: '1s',
    delay_warning_time: '1s',
    maximal_queue_lifetime: '5s',
  };
}

/** An `inline:` table (DATABASE_README), which needs no file. */
function inlineTable(entries: string[][]): string {
  return `inline:{ ${entries.map(([key, value]) => `{ ${key} = ${value} }`).join(', ')} }`;
}

/** master(5): the daemons, without chroot. */
function masterTable(port: number): string {
  const daemons = [
    ['pickup', 'unix', 'n', '1', 'pickup'],
    ['cleanup', 'unix', 'n', '0', 'cleanup'],
    ['qmgr', 'unix', 'n', '1', 'qmgr'],
    ['rewrite', 'unix', '-', '-', 'trivial-rewrite'],
    ['bounce', 'unix', '-', '0', 'bounce'],
    ['defer', 'unix', '-', '0', 'bounce'],
    ['trace', 'unix', '-', '0', 'bounce'],
    ['flush', 'unix', 'n', '0', 'flush'],
    ['anvil', 'unix', '-', '1', 'anvil'],
    ['smtp', 'unix', '-', '-', 'smtp'],
    ['error', 'unix', '-', '-', 'error'],
    ['retry', 'unix', '-', '-', 'error'],
    ['scache', 'unix', '-', '1', 'scache'],
    ['postlog', 'unix-dgram', 'n', '1', 'postlogd'],
    [`127.0.0.1:${port}`, 'inet', 'n', '-', 'smtpd'],
  ];
  const lines = daemons.map(([name, type, isPrivate, limit, command]) =>
    [name, type, isPrivate, '-', 'n', '-', limit, command].join(' '),
  );
  // virtual(8) changes its user itself, so it starts privileged.
  return `${[...lines, 'virtual unix - n n - - virtual'].join('\n')}\n`;
}

function readMaildir(directory: string): Buffer[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .sort()
    .map((name) => readFileSync(join(directory, name)));
}
