import { defineTool, READS } from '../tool.ts';
import {
  arrays,
  booleans,
  DEFAULT_LIMIT,
  input,
  objects,
  objectsOrNull,
  optional,
  PAGE,
  page,
  strings,
  stringsOrNull,
  text,
} from './fields.ts';

const INBOX = {
  ...strings('object', 'id', 'email', 'display_name', 'env_id', 'status', 'send_paused_reason'),
  ...arrays('aliases'),
  ...booleans('send_paused'),
};

export const accountTools = [
  defineTool({
    name: 'whoami',
    description: 'What this credential is, reaches and may do, and how much it may still send.',
    operations: ['me.get'],
    input: input({}),
    output: {
      ...strings('object', 'kind', 'id', 'binding'),
      ...stringsOrNull('user_id', 'org_id', 'env_id', 'inbox_id', 'suspended', 'expires_at'),
      ...arrays('permissions'),
      ...booleans('is_sandbox'),
      ...objects('rate_limit'),
      ...objectsOrNull('sends'),
    },
    annotations: READS,
    run: async (_args, { call }) => (await call('me.get', {})).body,
  }),
  defineTool({
    name: 'list_inboxes',
    description: 'List inboxes, newest first.',
    operations: ['inboxes.list'],
    input: input({ email: optional(text('Only the inbox with this address')), ...page }),
    output: PAGE,
    annotations: READS,
    async run({ limit = DEFAULT_LIMIT, ...args }, { call }) {
      const { body } = await call('inboxes.list', { query: { ...args, limit } });
      return { ...body, data: (body.data as Record<string, unknown>[]).map(shorten) };
    },
  }),
  defineTool({
    name: 'create_inbox',
    description: 'Create an inbox, with a random address unless named.',
    operations: ['inboxes.create'],
    input: input({
      username: optional(text('The part before the @')),
      domain: optional(text('A verified domain; default: the shared one')),
      display_name: optional(text()),
      client_id: optional(text('A repetition with it returns the same inbox')),
    }),
    output: INBOX,
    annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    run: async (args, { call }) => shorten((await call('inboxes.create', { body: args })).body),
  }),
];

/** What an agent uses of an inbox; a credential that may not read inboxes gets less. */
function shorten(inbox: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.keys(INBOX)
      .filter((name) => inbox[name] !== null && inbox[name] !== undefined)
      .map((name) => [name, inbox[name]]),
  );
}
