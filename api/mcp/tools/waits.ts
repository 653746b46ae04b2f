import { invalid } from '../../../platform/errors.ts';
import type { OperationResult } from '../operations.ts';
import { type Answer, defineTool, READS } from '../tool.ts';
import { booleans, input, integer, MESSAGE, optional, strings, text } from './fields.ts';

/** As far back as the operation looks without `since`: what arrived while the host thought counts. */
const LOOKBACK_MS = 30_000;

const criteria = {
  from: optional(text()),
  subject: optional(text('Part of it')),
  since: optional(text('Id of the last message seen, or a time; default: 30 s ago')),
  timeout_seconds: optional(integer('At most 50')),
};
const FOUND = { ...MESSAGE, ...booleans('timed_out'), ...strings('since') };

export const waitTools = [
  defineTool({
    name: 'wait_for_message',
    description: 'Wait for an incoming message in an inbox or a thread. Go on with the since of the answer.',
    operations: ['messages.wait', 'threads.wait'],
    input: input({ inbox_id: optional(text()), thread_id: optional(text()), ...criteria }),
    output: FOUND,
    annotations: READS,
    async run({ inbox_id: inboxId, thread_id: threadId, timeout_seconds: seconds, ...query }, { wait }) {
      const asked = { ...query, view: 'agent' };
      const startedAt = Date.now();
      if (inboxId !== undefined && threadId === undefined)
        return present(await wait('messages.wait', { params: { inboxId }, query: asked }, seconds), {
          ...query,
          startedAt,
        });
      if (threadId !== undefined && inboxId === undefined)
        return present(await wait('threads.wait', { params: { id: threadId }, query: asked }, seconds), {
          ...query,
          startedAt,
        });
      throw invalid('/body/inbox_id', 'or thread_id is required, and not both', 'Send one of the two.');
    },
  }),
  defineTool({
    name: 'wait_for_code',
    description: 'Wait for a message with a one-time code. codes has it, the best first.',
    operations: ['messages.wait'],
    input: input({ inbox_id: text(), ...criteria }),
    output: FOUND,
    annotations: READS,
    async run({ inbox_id: inboxId, timeout_seconds: seconds, ...query }, { wait }) {
      const startedAt = Date.now();
      const asked = { ...query, view: 'agent', for: 'code' };
      return present(await wait('messages.wait', { params: { inboxId }, query: asked }, seconds), {
        ...query,
        startedAt,
      });
    },
  }),
];

/** `since` continues without a gap and without a repetition. */
function present(
  { body }: OperationResult,
  { since, startedAt }: { since?: string; startedAt: number },
): Answer {
  if (body.timed_out !== true) return { ...body, since: body.id };
  return { ...body, since: since ?? new Date(startedAt - LOOKBACK_MS).toISOString() };
}
