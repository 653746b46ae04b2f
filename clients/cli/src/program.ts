import { Command, Option } from 'commander';
import { duration, integer, list, positiveInteger, repeated } from './arguments.ts';
import type { Context, GlobalOptions, Io } from './context.ts';
import { createOutput } from './output.ts';
import { VERSION } from './version.ts';

/** Seconds that `--wait` alone waits. */
const DEFAULT_WAIT = 300;
const DEFAULT_PURGE_WAIT = 3_600;

type Run = (context: Context, ...values: never[]) => Promise<void>;

/**
 * The commands with their options. What a command does is loaded when it runs, so that the others start faster.
 */
export function createProgram(io: Io): Command {
  const program = new Command('agent-email')
    .description('Email inboxes for software agents: send, read and wait for mail.')
    .version(VERSION)
    .option('--json', 'write JSON, as to a pipe')
    .option('--profile <name>', 'use this profile of agent-email login')
    .option('--env <id>', 'work in this environment (env_…)')
    .showSuggestionAfterError()
    .helpCommand(false)
    .addHelpText('after', HELP);

  /** Loads a command and runs it with its arguments and options. */
  const run =
    (load: () => Promise<Run>) =>
    async (...values: unknown[]): Promise<void> => {
      const globals: GlobalOptions = program.opts();
      const { stdout, stderr } = io;
      const output = createOutput({ stdout, stderr, json: globals.json === true });
      const command = await load();
      // The last value is commander's own object.
      await command({ ...io, output, globals }, ...(values.slice(0, -1) as never[]));
    };

  addAccountCommands(program, run);
  addMailCommands(program, run);
  addDraftCommands(program, run);
  addEventCommands(program, run);
  addToolCommands(program, run, io);
  return program;
}

type Runner = (load: () => Promise<Run>) => (...values: unknown[]) => Promise<void>;

const HELP = `
Exit codes: 0 done, 1 the service or the network, 2 wrong usage, 3 the credential, 4 not in time.
Keys are never arguments: log in, pipe one into login --with-key, or set AGENT_EMAIL_API_KEY and AGENT_EMAIL_BASE_URL.`;

function addAccountCommands(program: Command, run: Runner): void {
  program
    .command('login')
    .description('Signs in with the browser, or keeps the key that stands on standard input.')
    .option(
      '--base-url <url>',
      'address of the service (default: AGENT_EMAIL_BASE_URL, or http://localhost:3000)',
    )
    .option('--with-key', 'read an API key from standard input')
    .option('--no-browser', 'only print the address to open')
    .action(run(async () => (await import('./commands/account.ts')).login));
  program
    .command('logout')
    .description('Forgets the profile, and ends its sign-in at the service.')
    .action(run(async () => (await import('./commands/account.ts')).logout));
  program
    .command('whoami')
    .description('Shows the credential, what it reaches, and what it may still send.')
    .action(run(async () => (await import('./commands/account.ts')).whoami));
  program
    .command('doctor')
    .description(
      'Looks for what is wrong: address, TLS, clock, key, permissions, domains, webhook endpoints.',
    )
    .action(run(async () => (await import('./commands/doctor.ts')).doctor));
}

const withBody = (command: Command): Command =>
  command
    .option('--text <text>', 'text of the message')
    .option('--text-file <path>', 'file with the text; - is standard input, as without any of these options')
    .option('--html-file <path>', 'file with the HTML')
    .option('--attach <path>', 'file to attach; can be given several times', repeated);

const withSending = (command: Command): Command =>
  withBody(command)
    .option('--idempotency-key <key>', 'send once, however often the command runs with this key')
    .addOption(waitOption());

const waitOption = (preset = DEFAULT_WAIT): Option =>
  new Option('--wait [time]', `wait until it is done, for so long (default: ${preset}s)`)
    .preset(String(preset))
    .argParser(duration);

const withRecipients = (command: Command): Command =>
  command
    .option('--from <inbox>', 'inbox to send from, by id or address (default: the only one)')
    .option('--cc <address>', 'copy; can be given several times', repeated)
    .option('--bcc <address>', 'blind copy; can be given several times', repeated)
    .option('--reply-to <address>', 'address for answers; can be given several times', repeated)
    .option('--subject <text>', 'subject')
    .option('--at <time>', 'send later, at this time (ISO 8601)');

const withLimit = (command: Command): Command =>
  command.option('--limit <number>', 'show at most so many', positiveInteger, 25);

function addMailCommands(program: Command, run: Runner): void {
  const inboxes = withLimit(program.command('inboxes'))
    .description('Lists inboxes; creates, shows, pauses and resumes one.')
    .action(run(async () => (await import('./commands/inboxes.ts')).listInboxes));
  inboxes
    .command('create')
    .description('Creates an inbox.')
    .option('--username <name>', 'the part before the @ (default: a new one)')
    .option('--domain <domain>', 'a verified domain (default: the shared one)')
    .option('--display-name <name>', 'name that recipients see')
    .option('--client-id <id>', 'a name of yours: repeating it finds the inbox instead of creating another')
    .action(run(async () => (await import('./commands/inboxes.ts')).createInbox));
  inboxes
    .command('show')
    .description('Shows an inbox.')
    .argument('<inbox>', 'id or address')
    .action(run(async () => (await import('./commands/inboxes.ts')).showInbox));
  inboxes
    .command('pause')
    .description('Pauses sending from an inbox. It still receives.')
    .argument('<inbox>', 'id or address')
    .requiredOption('--reason <text>', 'why; refused sends and the audit log show it')
    .action(run(async () => (await import('./commands/inboxes.ts')).pauseInbox));
  inboxes
    .command('resume')
    .description('Resumes sending from an inbox (permission inboxes:manage).')
    .argument('<inbox>', 'id or address')
    .action(run(async () => (await import('./commands/inboxes.ts')).resumeInbox));

  withSending(withRecipients(program.command('send')))
    .description('Sends a message. The text comes from an option or from standard input.')
    .requiredOption('--to <address>', 'recipient; can be given several times', repeated)
    .action(run(async () => (await import('./commands/send.ts')).send));
  withSending(program.command('reply'))
    .description('Answers a message in its thread.')
    .argument('<message>', 'id (msg_…)')
    .option('--all', 'answer everyone in To and Cc, too')
    .action(run(async () => (await import('./commands/send.ts')).reply));

  withLimit(program.command('messages'))
    .description('Lists messages, newest first.')
    .option('--inbox <inbox>', 'of this inbox, by id or address')
    .option('--query <words>', 'search, as in the API: words, "phrases", from: subject: has:attachment')
    .addOption(new Option('--direction <direction>', 'only these').choices(['inbound', 'outbound']))
    .option('--label <label>', 'with this label')
    .action(run(async () => (await import('./commands/messages.ts')).listMessages));
  program
    .command('read')
    .description('Shows a message, and saves its files.')
    .argument('<message>', 'id (msg_…)')
    .option('--save <folder>', 'save the attachments into this folder')
    .option('--force', 'replace files that exist')
    .option('--markdown', 'keep headings, lists, tables and links of HTML')
    .option('--max-chars <number>', 'cut the text', positiveInteger)
    .option('--offset <number>', 'where to go on in a long text', integer)
    .action(run(async () => (await import('./commands/messages.ts')).readMessage));
  program
    .command('wait')
    .description(
      'Waits for the next message of an inbox or thread, or for the outcome of a message or draft.',
    )
    .argument('[id]', 'inbox by id or address, thread (thr_…), message (msg_…) or draft (drf_…)')
    .option('--inbox <inbox>', 'the inbox (default: the only one)')
    .option('--code', 'wait for a one-time code, and print it alone')
    .option('--from <sender>', 'only from this address or domain')
    .option('--subject <text>', 'only with this in the subject')
    .option('--since <id-or-time>', 'what arrived after this message or time counts, too')
    .option('--timeout <time>', 'wait at most so long', duration, DEFAULT_WAIT)
    .action(run(async () => (await import('./commands/wait.ts')).wait));
  program
    .command('purge')
    .description('Deletes an inbox with all its messages, for good.')
    .argument('<inbox>', 'id or address')
    .option('--yes', 'do not ask')
    .addOption(waitOption(DEFAULT_PURGE_WAIT))
    .action(run(async () => (await import('./commands/purge.ts')).purge));
}

function addDraftCommands(program: Command, run: Runner): void {
  const drafts = withLimit(program.command('drafts'))
    .description('Lists drafts, and creates, shows, sends and deletes one.')
    .option('--inbox <inbox>', 'of this inbox, by id or address')
    .action(run(async () => (await import('./commands/drafts.ts')).listDrafts));
  withBody(withRecipients(drafts.command('create')))
    .description('Creates a draft.')
    .option('--to <address>', 'recipient; can be given several times', repeated)
    .action(run(async () => (await import('./commands/drafts.ts')).createDraft));
  const draft = (name: string, description: string) =>
    drafts.command(name).description(description).argument('<draft>', 'id (drf_…)');
  draft('show', 'Shows a draft.').action(run(async () => (await import('./commands/drafts.ts')).showDraft));
  draft('send', 'Sends a draft.')
    .option('--idempotency-key <key>', 'send once, however often the command runs with this key')
    .addOption(waitOption())
    .action(run(async () => (await import('./commands/drafts.ts')).sendDraft));
  draft('delete', 'Deletes a draft.').action(
    run(async () => (await import('./commands/drafts.ts')).deleteDraft),
  );
}

const withFilters = (command: Command): Command =>
  command
    .option('--types <types>', 'only events of these types, separated by commas', list)
    .option('--inbox <inbox>', 'only events of this inbox, by id or address')
    .option('--after <event>', 'begin after this event (evt_…) instead of now')
    .option('--limit <number>', 'end after so many events', positiveInteger);

function addEventCommands(program: Command, run: Runner): void {
  const webhooks = program.command('webhooks').description('Tests programs that receive webhooks.');
  withFilters(webhooks.command('listen'))
    .description(
      'Forwards events to a program on this computer, signed as webhooks are. Needs no public address.',
    )
    .requiredOption('--forward-to <url>', 'where to, such as http://localhost:8080/hook')
    .option('--allow-remote', 'also to another computer')
    .action(run(async () => (await import('./commands/follow.ts')).listen));
  webhooks
    .command('trigger')
    .description('Sends an event with sample data to a webhook endpoint. Needs a key with webhooks:manage.')
    .argument('<type>', 'such as message.received')
    .option('--endpoint <id>', 'the endpoint (default: the only one)')
    .action(run(async () => (await import('./commands/webhooks.ts')).trigger));
  withFilters(program.command('tail'))
    .description('Shows events as they happen.')
    .action(run(async () => (await import('./commands/follow.ts')).tail));
  program
    .command('replay')
    .description('Delivers events to a webhook endpoint again. Needs a key with webhooks:manage.')
    .argument('<id>', 'delivery (whd_…), or endpoint with --since')
    .option('--since <time>', 'events from this time (ISO 8601)')
    .option('--until <time>', 'events before this time')
    .option('--types <types>', 'only events of these types, separated by commas', list)
    .option('--only-failed', 'only what did not arrive')
    .addOption(waitOption())
    .action(run(async () => (await import('./commands/webhooks.ts')).replay));
}

function addToolCommands(program: Command, run: Runner, { stdout }: Io): void {
  program
    .command('mcp')
    .description('Connects a host that speaks MCP over standard input and output with the service.')
    .action(run(async () => (await import('./commands/mcp-bridge.ts')).mcp));
  program
    .command('completion')
    .description('Prints a script that completes commands in a shell.')
    .argument('<shell>', 'bash, zsh or fish')
    .action(async (shell: string) => {
      stdout.write((await import('./commands/completion.ts')).completionScript(program, shell));
    });
}
