import { AgentEmailError } from './errors.ts';
import { attach, type FileInput } from './files.ts';
import { type MessagesWaitParams, Resources, type ThreadsWaitParams } from './generated/resources.ts';
import type {
  AgentMessage,
  AgentMessageCode,
  AttachmentInput,
  DraftOutcome,
  Message,
  MessageView,
} from './generated/types.ts';
import { Requester, type RequestOptions } from './requests.ts';
import { type AgentTool, listTools, type ToolOptions } from './tools.ts';
import { type WaitOptions, waitFor } from './waits.ts';
import { webhooks } from './webhooks.ts';

export interface ClientOptions<Receipts extends boolean = boolean> {
  /** Default: the variable AGENT_EMAIL_API_KEY. */
  apiKey?: string | undefined;
  /** The address of the service, without /api/v1. Default: the variable AGENT_EMAIL_BASE_URL. */
  baseUrl?: string | undefined;
  /** The key may change resources, but not read them: changes are typed as the receipts that it gets. */
  receipts?: Receipts | undefined;
  /** The environment of requests, for a credential that is not bound to one. Default: that of the resource, or production. */
  envId?: string | undefined;
  /** For each attempt; a waiting call has the time that it waits, too. Default: 60,000. */
  timeoutMs?: number | undefined;
  /** After a broken connection, 429 or 5xx. Default: 2. */
  maxRetries?: number | undefined;
  fetch?: typeof fetch | undefined;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_MAX_RETRIES = 2;

/** How long to wait, and for what. */
export type MessageWait = Omit<MessagesWaitParams & ThreadsWaitParams, 'timeout_seconds' | 'view' | 'for'>;

/** A one-time code, with the message that it stands in. */
export interface FoundCode extends AgentMessageCode {
  message: AgentMessage;
}

/** The client of the service. Its groups have the operations of the API: `client.messages.send(inboxId, { … })`. */
export class AgentEmail<Receipts extends boolean = false> extends Resources<Receipts> {
  readonly webhooks = webhooks;

  constructor(options: ClientOptions<Receipts> = {}) {
    super(new Requester(readSettings(options)));
  }

  /** Waits for a message in an inbox (`inb_…`) or a thread (`thr_…`) that arrived in the last 30 seconds, or arrives. */
  waitForMessage(
    id: string,
    wait: MessageWait & { view: 'agent' },
    options?: WaitOptions,
  ): Promise<AgentMessage>;
  waitForMessage(
    id: string,
    wait?: MessageWait & { view?: 'full' | undefined },
    options?: WaitOptions,
  ): Promise<Message>;
  waitForMessage(
    id: string,
    wait: MessageWait & { view?: MessageView | undefined },
    options?: WaitOptions,
  ): Promise<Message | AgentMessage>;
  waitForMessage(
    id: string,
    wait: MessageWait & { view?: MessageView | undefined; for?: 'code' } = {},
    options: WaitOptions = {},
  ): Promise<Message | AgentMessage> {
    const { messages, threads } = this;
    const missing = `No ${wait.for ?? 'message'} came to ${id}`;
    return waitFor(missing, options, ({ timeoutSeconds, since, options: own }) => {
      const params = {
        ...wait,
        timeout_seconds: timeoutSeconds,
        since: wait.since ?? since,
      } as MessagesWaitParams & {
        view?: 'full';
      };
      return (
        id.startsWith('thr_') ? threads.wait(id, params, own) : messages.wait(id, params, own)
      ).withResponse();
    });
  }

  /** Waits for a message with a one-time code, and returns its first one. */
  async waitForCode(id: string, wait: MessageWait = {}, options: WaitOptions = {}): Promise<FoundCode> {
    const wanted = { ...wait, view: 'agent' as const, for: 'code' as const };
    const message = await this.waitForMessage(id, wanted, options);
    const [code] = message.codes ?? [];
    if (!code) throw new AgentEmailError(`The message ${message.id} has no code.`);
    return { ...code, message };
  }

  /** Waits until the outcome of a message is known: delivered, bounced, … A server may defer a message for days. */
  waitForOutcome(messageId: string, options: WaitOptions & { view: 'agent' }): Promise<AgentMessage>;
  waitForOutcome(messageId: string, options?: WaitOptions & { view?: 'full' | undefined }): Promise<Message>;
  waitForOutcome(
    messageId: string,
    options: WaitOptions & { view?: MessageView | undefined },
  ): Promise<Message | AgentMessage>;
  waitForOutcome(
    messageId: string,
    { view, ...options }: WaitOptions & { view?: MessageView | undefined } = {},
  ): Promise<Message | AgentMessage> {
    return waitFor(
      `The outcome of ${messageId} was not known`,
      options,
      ({ timeoutSeconds, options: own }) => {
        const params = { timeout_seconds: timeoutSeconds, view: view as 'full' };
        return this.messages.waitUntilSettled(messageId, params, own).withResponse();
      },
    );
  }

  /**
   * Waits until a draft is decided about (`approved`, `rejected`) or has its end (`sent`, `failed`, `deleted`). So a scheduled
   * draft that needs no approval is waited for until it was sent.
   */
  waitForDecision(draftId: string, options: WaitOptions = {}): Promise<DraftOutcome> {
    return waitFor(`There was no decision about ${draftId}`, options, ({ timeoutSeconds, options: own }) =>
      this.drafts.wait(draftId, { timeout_seconds: timeoutSeconds }, own).withResponse(),
    );
  }

  /** The tools of the service for a model, in no framework's form: `agent-email/ai-sdk`, `/openai-agents` and `/langchain` have those. */
  tools(options?: ToolOptions): Promise<AgentTool[]> {
    return listTools(this.requester, options);
  }

  /**
   * The files as `attachments` of a message or draft. Files of up to 1 MiB together stand in it; others are uploaded to the inbox.
   * With an `idempotencyKey`, each upload has a key that is derived from it: a repeat with the same files returns the same, so
   * that the send can be repeated, too.
   */
  attach(
    inboxId: string,
    files: readonly FileInput[],
    { idempotencyKey, ...options }: RequestOptions = {},
  ): Promise<AttachmentInput[]> {
    return attach(files, async (file, number) => {
      // Two files under one key would be two requests under one key, which the service refuses.
      const key = idempotencyKey === undefined ? {} : { idempotencyKey: `${idempotencyKey}:file-${number}` };
      return (await this.attachments.upload(inboxId, file, { ...options, ...key })).id;
    });
  }
}

function readSettings({
  timeoutMs = DEFAULT_TIMEOUT_MS,
  maxRetries = DEFAULT_MAX_RETRIES,
  ...options
}: ClientOptions) {
  if ('window' in globalThis && 'document' in globalThis)
    throw new AgentEmailError(
      'AgentEmail does not run in a browser: everyone who opens the page could read the key.',
    );
  const apiKey = (options.apiKey ?? process.env.AGENT_EMAIL_API_KEY ?? '').trim();
  const baseUrl = (options.baseUrl ?? process.env.AGENT_EMAIL_BASE_URL ?? '').trim();
  if (apiKey === '')
    throw new AgentEmailError(
      'The API key is missing: pass apiKey, or set the variable AGENT_EMAIL_API_KEY.',
    );
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    throw new AgentEmailError('The API key has characters that no key has.');
  return {
    apiKey,
    baseUrl: readBaseUrl(baseUrl),
    fetch: options.fetch ?? fetch,
    timeoutMs,
    maxRetries,
    envId: options.envId,
  };
}

function readBaseUrl(text: string): string {
  if (text === '')
    throw new AgentEmailError(
      'The address of the service is missing: pass baseUrl, or set AGENT_EMAIL_BASE_URL.',
    );
  const url = URL.canParse(text) ? new URL(text) : null;
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username || url.search || url.hash)
    throw new AgentEmailError(
      `${JSON.stringify(text)} is not the address of a service, such as https://mail.example.com.`,
    );
  return url.href.replace(/\/+$/, '').replace(/\/api\/v1$/, '');
}
