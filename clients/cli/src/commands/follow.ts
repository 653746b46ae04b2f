import { usageError } from '../cli-error.ts';
import type { Context } from '../context.ts';
import { forward } from '../listen/forward.ts';
import { createSecret } from '../listen/sign.ts';
import { isLoopback, parseUrl } from '../profiles/address.ts';
import type { AgentEmail, Event } from '../sdk.ts';
import { openSession } from '../session.ts';
import { visible } from '../terminal/visible.ts';
import { eventLine } from './event-line.ts';
import { findInboxId } from './inbox-argument.ts';

export interface FollowOptions {
  types?: string[];
  inbox?: string;
  /** An event id. */
  after?: string;
  /** Ends after so many events. */
  limit?: number;
}

export interface ListenOptions extends FollowOptions {
  forwardTo: string;
  allowRemote?: true;
}

/** As many as the service delivers to one endpoint at once. */
const MAX_CONCURRENT = 10;

/** Shows events as they happen. The stream continues after a restart of the service, and nothing is lost or shown twice. */
export async function tail(context: Context, options: FollowOptions): Promise<void> {
  const { client } = await openSession(context);
  for await (const event of await follow(client, options)) context.output.item(event, () => eventLine(event));
}

/** Forwards events to a program on this computer, signed as webhooks are, with a secret of its own. */
export async function listen(context: Context, options: ListenOptions): Promise<void> {
  const { output } = context;
  const url = readTarget(options);
  const { client } = await openSession(context);
  const events = await follow(client, options);
  const secret = createSecret();
  output.item(
    { object: 'listener', forward_to: url, secret },
    () => `Ready. The secret of this listener: ${secret}`,
  );
  const running = new Set<Promise<void>>();
  for await (const event of events) {
    const work = forward(event, { url, secret }).then((answer) =>
      output.item(
        { object: 'forward', event_id: event.id, event_type: event.type, ...answer },
        () => `${eventLine(event)}  -> ${visible(describe(answer))}`,
      ),
    );
    running.add(work);
    work.finally(() => running.delete(work));
    if (running.size >= MAX_CONCURRENT) await Promise.race(running);
  }
  await Promise.all(running);
}

const describe = ({ status, error, duration_ms }: Awaited<ReturnType<typeof forward>>) =>
  `${status ?? error} (${duration_ms} ms)`;

function readTarget({ forwardTo, allowRemote }: ListenOptions): string {
  const url = parseUrl(forwardTo.includes('://') ? forwardTo : `http://${forwardTo}`);
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw usageError(`${forwardTo} is no http address.`, 'Give one such as http://localhost:8080/hook.');
  if (!allowRemote && !isLoopback(url))
    throw usageError(
      `${url.host} is not this computer, and events have the text of mail.`,
      'Give an address on localhost, or --allow-remote.',
    );
  return url.href;
}

/** Resolves when the stream is open: what happens from then on is among the events. */
async function follow(
  client: AgentEmail,
  { types, inbox, after, limit }: FollowOptions,
): Promise<AsyncIterable<Event>> {
  const inbox_id = inbox === undefined ? undefined : await findInboxId(client, inbox);
  const stream = client.events.stream({ types: types?.join(), inbox_id, after });
  if (after === undefined) await stream.open();
  return limit === undefined ? stream : first(stream, limit);
}

async function* first(events: AsyncIterable<Event>, limit: number): AsyncGenerator<Event> {
  let count = 0;
  for await (const event of events) {
    yield event;
    if (++count >= limit) return;
  }
}
