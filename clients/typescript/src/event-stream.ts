import { AgentEmailError, APIError, ConnectionError } from './errors.ts';
import type { Event, EventType } from './generated/types.ts';
import { backOffMs, retryDelayMs, sleep } from './retries.ts';

export interface EventStreamParams {
  /** Go on after this position (`stream.position`), or after an event (`evt_…`). Default: the next event. */
  last_event_id?: string | null | undefined;
  /** What `last_event_id` is called in the query of the API. Only without `last_event_id`. */
  after?: string | null | undefined;
  /** Only these. */
  types?: EventType | EventType[] | (string & {}) | undefined;
  /** Only events of this inbox. */
  inbox_id?: string | undefined;
}

export interface EventStreamSettings {
  lastEventId: string | undefined;
  signal: AbortSignal | undefined;
  /** Before the first connection; a stream that was open is reopened until it is closed. */
  maxRetries: number;
  connect(position: string | undefined, signal: AbortSignal): Promise<Response>;
}

/** A heartbeat comes every 15 s. */
const IDLE_TIMEOUT_MS = 60_000;
const MAX_RECONNECT_MS = 30_000;
/** An event has at most 256 KiB. */
const MAX_BLOCK_CHARS = 8_388_608;

/**
 * Events as they happen. When the connection breaks, the stream goes on after the last event that it gave, so that none is
 * missed or repeated. After a restart of your program, start with the `position` that you stored. A stream is read once: to open
 * or read one that was closed, or whose loop has ended, is an error.
 */
export class EventStream implements AsyncIterable<Event> {
  readonly #settings: EventStreamSettings;
  readonly #controller = new AbortController();
  #position: string | undefined;
  #reconnectMs = 1_000;
  #wasOpen = false;
  #failures = 0;

  constructor(settings: EventStreamSettings) {
    this.#settings = settings;
    this.#position = settings.lastEventId;
  }

  /**
   * Where the stream is: after the last event that it gave. Before its first event: `last_event_id`, or without it where the
   * service began the stream; undefined until the service has answered.
   */
  get position(): string | undefined {
    return this.#position;
  }

  /** Ends the loop that reads the stream. */
  close(): void {
    this.#controller.abort();
  }

  /**
   * Begins the stream now: what happens from now on is given when it is read. Without it, the stream begins when it is read.
   * Returns once the service has accepted `last_event_id`.
   *
   * @throws AgentEmailError if the stream is closed.
   */
  async open(): Promise<void> {
    if (this.#wasOpen && this.#position !== undefined && !this.#controller.signal.aborted) return;
    for await (const _ of this.#read('position')) return;
  }

  [Symbol.asyncIterator](): AsyncGenerator<Event, void, undefined> {
    return this.#read('events');
  }

  async *#read(wanted: 'events' | 'position'): AsyncGenerator<Event, void, undefined> {
    const { signal } = this.#settings;
    const close = () => this.close();
    signal?.addEventListener('abort', close, { once: true });
    try {
      signal?.throwIfAborted();
      if (this.#controller.signal.aborted)
        throw new AgentEmailError('The event stream is closed. Begin another one with its position.');
      while (!this.#controller.signal.aborted) {
        let delayMs = this.#reconnectMs;
        try {
          yield* this.#readOnce(wanted);
          if (wanted === 'position' && this.#position !== undefined) return;
          // The service closes streams when it restarts, and says before when to come back.
          delayMs = this.#reconnectMs;
        } catch (error) {
          if (this.#controller.signal.aborted) break;
          this.#throwIfFinal(error);
          delayMs = this.#delayMs(error);
          this.#failures++;
        }
        // If it is closed meanwhile, the loop ends.
        await sleep(delayMs, this.#controller.signal).catch(() => undefined);
      }
      signal?.throwIfAborted();
    } finally {
      signal?.removeEventListener('abort', close);
      if (wanted === 'events') this.close();
    }
  }

  #throwIfFinal(error: unknown): void {
    const isRefusal = error instanceof APIError && retryDelayMs(error, 0) === null;
    if (!isRefusal && (this.#wasOpen || this.#failures < this.#settings.maxRetries)) return;
    if (error instanceof APIError) throw error;
    throw new ConnectionError(`The event stream cannot be opened: ${(error as Error).message}.`, {
      cause: error,
    });
  }

  #delayMs(error: unknown): number {
    const wanted = error instanceof APIError ? retryDelayMs(error, this.#failures) : null;
    return (
      wanted ?? Math.max(this.#wasOpen ? this.#reconnectMs : 0, backOffMs(this.#failures, MAX_RECONNECT_MS))
    );
  }

  /** One connection: its events, until it ends, or until the position is known. */
  async *#readOnce(wanted: 'events' | 'position'): AsyncGenerator<Event, void, undefined> {
    const connection = new AbortController();
    const abort = () => connection.abort();
    this.#controller.signal.addEventListener('abort', abort, { once: true });
    let timer = setTimeout(abort, IDLE_TIMEOUT_MS);
    try {
      const response = await this.#settings.connect(this.#position, connection.signal);
      if (!response.body) throw new ConnectionError('The event stream has no body.');
      this.#wasOpen = true;
      if (wanted === 'position' && this.#position !== undefined) return;
      let rest = '';
      for await (const text of response.body.pipeThrough(new TextDecoderStream())) {
        // The caller may work for longer than the connection may be silent.
        clearTimeout(timer);
        this.#failures = 0;
        const blocks = (rest + text).split(/\r\n\r\n|\n\n|\r\r/);
        rest = blocks.pop() ?? '';
        if (rest.length > MAX_BLOCK_CHARS) throw new ConnectionError('An event of the stream has no end.');
        for (const block of blocks) {
          const event = this.#accept(block);
          if (wanted === 'position' && this.#position !== undefined) return;
          if (event) yield event;
        }
        timer = setTimeout(abort, IDLE_TIMEOUT_MS);
      }
    } finally {
      clearTimeout(timer);
      this.#controller.signal.removeEventListener('abort', abort);
      connection.abort();
    }
  }

  /** Takes a whole block: what was cut off does not count. */
  #accept(block: string): Event | null {
    const data: string[] = [];
    let id: string | undefined;
    for (const line of block.split(/\r\n|\n|\r/)) {
      const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
      if (name === 'data') data.push(value);
      else if (name === 'id') id = value;
      else if (name === 'retry' && /^\d{1,6}$/.test(value)) this.#reconnectMs = Number(value);
    }
    const event = data.length === 0 ? null : (JSON.parse(data.join('\n')) as Event);
    if (id) this.#position = id;
    return event;
  }
}
