import { anyOf } from '../../platform/database/any-of.ts';
import type { Database } from '../../platform/database/database.ts';
import type { Scope } from '../identity/scope.ts';
import { ConversionStoppedError, type HtmlConverter } from '../mime/converter/pool.ts';
import { toAddressKey } from '../mime/mail-address.ts';
import type { TextFormat } from '../mime/new-text.ts';
import { type AgentText, cutText, readStartOfText, shortenUrls } from './agent-text.ts';
import { isFailure } from './delivery-failure.ts';
import type { ListedMessage, MessageDetails } from './message-details.ts';

export type AgentMessageService = ReturnType<typeof createAgentMessageService>;

export interface TextRequest {
  format: TextFormat;
  offset: number;
  maxCharacters: number;
}

/** Whether the service sends no more to an address from the inbox of a message. */
export type IsSuppressed = (message: ListedMessage, email: string) => boolean;

export interface AgentMessageOptions {
  database: Database;
  converter: Pick<HtmlConverter, 'forOrganization'>;
}

/** What the view for agents needs beyond the rows of a message. */
export function createAgentMessageService({ database, converter }: AgentMessageOptions) {
  async function convertText(message: ListedMessage, { format, ...part }: TextRequest): Promise<AgentText> {
    const { toNewText } = converter.forOrganization(message.organizationId);
    const { direction, extractedText, textBody, htmlBody } = message;
    if (format === 'markdown' && htmlBody?.trim())
      return cutText(await toNewText(htmlBody, { from: 'html', as: 'markdown' }), part);
    if (direction === 'inbound') return cutText(shortenUrls(extractedText ?? ''), part);
    const text = textBody?.trim()
      ? await toNewText(textBody, { from: 'text', as: 'text' })
      : await toNewText(htmlBody ?? '', { from: 'html', as: 'text' });
    return cutText(shortenUrls(text), part);
  }

  return {
    /**
     * Reads the text of one message. Long bodies are converted in another process, so call it outside a transaction. If a
     * message stops that process, its text is what was read on arrival; of a sent one, the start.
     */
    async readText(message: ListedMessage, request: TextRequest): Promise<AgentText> {
      try {
        return await convertText(message, request);
      } catch (error) {
        if (!(error instanceof ConversionStoppedError)) throw error;
        const { direction, extractedText } = message;
        if (direction === 'inbound') return cutText(shortenUrls(extractedText ?? ''), request);
        return { ...cutText(shortenUrls(readStartOfText(message)), request), isTruncated: true };
      }
    },

    /** Reads which of the recipients that a message did not reach are suppressed now. */
    async findSuppressed(scope: Scope, listed: readonly MessageDetails[]): Promise<IsSuppressed> {
      const failed = listed.flatMap(({ recipients }) => recipients.filter(isFailure));
      const keys = [...new Set(failed.map(({ email }) => toAddressKey(email)))].filter((key) => key !== null);
      if (keys.length === 0) return () => false;
      const suppressions = await database.read(scope, ({ db }) =>
        db
          .selectFrom('suppressions')
          .select(['email', 'scope_id as scopeId'])
          .where('org_id', '=', scope.organizationId)
          .where('email', '=', anyOf(keys))
          .execute(),
      );
      const found = new Set(suppressions.map(({ email, scopeId }) => `${scopeId} ${email}`));
      return ({ organizationId, environmentId, inboxId }, email) =>
        [organizationId, environmentId, inboxId].some((id) => found.has(`${id} ${toAddressKey(email)}`));
    },
  };
}
