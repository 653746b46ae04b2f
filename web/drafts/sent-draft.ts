import type { FastifyReply, FastifyRequest } from 'fastify';
import { AppError } from '../../platform/errors.ts';
import type { Pages } from '../shell/pages.ts';

/** Shows a draft. One that was sent meanwhile leads to its message, so that links in emails and open tabs keep working. */
export async function showUnlessSent(
  pages: Pages,
  request: FastifyRequest,
  reply: FastifyReply,
  show: () => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await show();
  } catch (error) {
    const messageId = error instanceof AppError ? error.extensions?.message_id : undefined;
    if (typeof messageId !== 'string' || !request.scope.permissions.has('messages:read')) throw error;
    return pages.seeOther(reply, pages.link(request, `/messages/${messageId}`), 'draft-was-sent');
  }
}
