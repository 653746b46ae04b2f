import type { FastifyReply, FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import type { DraftDetails } from '../../domain/drafts/draft.service.ts';
import type { AgentMessageService } from '../../domain/messages/agent-message.service.ts';
import {
  type AgentText,
  DEFAULT_CHARACTERS,
  LISTED_CHARACTERS,
  readShortText,
} from '../../domain/messages/agent-text.ts';
import type { MessageDetails } from '../../domain/messages/message-details.ts';
import type { MessageView } from '../../domain/messages/message-view.ts';
import { TEXT_FORMATS } from '../../domain/mime/new-text.ts';
import { invalid } from '../../platform/errors.ts';
import type { Page } from '../../platform/pagination.ts';
import { presentDraft } from '../drafts/drafts.schemas.ts';
import type { ListResponse, Lists } from '../lists.ts';
import { enumOf, strictObject } from '../schemas.ts';
import { type AgentMessage, presentAgentMessage } from './agent-message.schemas.ts';
import { type MessageListItem, type MessageRecord, presenterOf, presentMessage } from './messages.schemas.ts';

const view = {
  view: enumOf(['full', 'agent'], {
    default: 'full',
    description: 'agent: an AgentMessage, one flat shape without empty fields.',
  }),
};
/** Parameters that choose the part and the form of the text. */
export const textParameters = {
  ...view,
  format: Type.Optional(
    enumOf(TEXT_FORMATS, {
      description:
        'view=agent: markdown keeps headings, lists, tables and links of the HTML body. Default: text.',
    }),
  ),
  max_chars: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 500_000,
      description: `view=agent: cuts the text. Default: ${DEFAULT_CHARACTERS.toLocaleString('en')}.`,
    }),
  ),
};
/** The query of a change that returns a message. */
export const ViewQuery = strictObject(view);
/** The query of one message. */
export const MessageViewQuery = strictObject({
  ...textParameters,
  offset: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 10_000_000,
      description: 'view=agent: where the text starts; next_offset of the part before.',
    }),
  ),
  links: enumOf(['key', 'all'], {
    default: 'key',
    description: 'all: every link of the message, also those of kind other, at most 500.',
  }),
});
type TextQuery = Partial<Static<typeof MessageViewQuery>>;

export type MessageResponse = Static<typeof MessageRecord>;

export type MessageViews = ReturnType<typeof createMessageViews>;

/** Presents messages in the view that a request asks for. */
export function createMessageViews({
  agentMessages,
  lists,
}: {
  agentMessages: AgentMessageService;
  lists: Lists;
}) {
  async function presentWith(
    { scope }: FastifyRequest,
    reply: FastifyReply,
    { details, text }: { details: MessageDetails; text: AgentText },
  ): Promise<MessageResponse> {
    const isSuppressed = await agentMessages.findSuppressed(scope, [details]);
    return asResponse(
      reply,
      presentAgentMessage(details, { text, isSuppressed: (email) => isSuppressed(details.message, email) }),
    );
  }

  /** For a message that a change returns. A credential that may not read gets only a part of the other view. */
  async function present(
    request: FastifyRequest,
    reply: FastifyReply,
    details: MessageDetails,
  ): Promise<MessageResponse> {
    if (!isAgentView(request) || !request.scope.permissions.has('messages:read'))
      return presentMessage(details);
    return presentWith(request, reply, { details, text: readShortText(details.message, DEFAULT_CHARACTERS) });
  }

  /** For the messages of a thread, or of another list. */
  async function presentListed(
    request: FastifyRequest,
    listed: readonly MessageDetails[],
  ): Promise<AgentMessage[]> {
    const isSuppressed = await agentMessages.findSuppressed(request.scope, listed);
    return listed.map((details) =>
      presentAgentMessage(details, {
        text: readShortText(details.message, LISTED_CHARACTERS),
        isListed: true,
        isSuppressed: (email) => isSuppressed(details.message, email),
      }),
    );
  }

  return {
    present,
    presentListed,

    /** For one message that is read: long bodies may be converted. */
    async presentRead(
      request: FastifyRequest,
      reply: FastifyReply,
      details: MessageDetails,
    ): Promise<MessageResponse> {
      const query = request.query as TextQuery;
      if (!isAgentView(request)) {
        refuseTextParameters(query);
        return presentMessage(details);
      }
      const text = await agentMessages.readText(details.message, {
        format: query.format ?? 'text',
        offset: query.offset ?? 0,
        maxCharacters: query.max_chars ?? DEFAULT_CHARACTERS,
      });
      return presentWith(request, reply, { details, text });
    },

    /** A send answers 201 with the message, or 202 with the draft that waits for its time or for approval. */
    async presentSent(
      request: FastifyRequest,
      reply: FastifyReply,
      sent: MessageDetails | DraftDetails,
    ): Promise<MessageResponse | ReturnType<typeof presentDraft>> {
      reply.code('draft' in sent ? 202 : 201);
      return 'draft' in sent ? presentDraft(sent) : present(request, reply, sent);
    },

    async presentList(
      request: FastifyRequest,
      reply: FastifyReply,
      page: Page<MessageDetails>,
    ): Promise<ListResponse<Static<typeof MessageListItem>>> {
      const { view: shown } = request.query as { view: MessageView };
      if (shown !== 'agent') return lists.present(request, page, presenterOf(shown));
      const items = await presentListed(request, page.items);
      return asResponse(
        reply,
        lists.present(request, { items, next: page.next }, (item) => item),
      );
    },
  };
}

export function isAgentView({ query }: FastifyRequest): boolean {
  return (query as { view?: string }).view === 'agent';
}

/**
 * The schema of the response is that of the other views: with a union, the serializer would validate each message to choose.
 * What the presenter returns is what is sent.
 */
export function asResponse<Response>(reply: FastifyReply, response: object): Response {
  reply.type('application/json; charset=utf-8').serializer(toJson);
  return response as Response;
}

/** A response of the idempotency store, or a minimal one, is serialized already. */
const toJson = (payload: unknown) => (typeof payload === 'string' ? payload : JSON.stringify(payload));

/** @throws AppError `validation_error`: ignored, they would mislead. */
function refuseTextParameters(query: TextQuery): void {
  for (const name of ['format', 'max_chars', 'offset'] as const)
    if (query[name] !== undefined)
      throw invalid(`/query/${name}`, 'needs view=agent', `Add view=agent, or leave out ${name}.`);
}
