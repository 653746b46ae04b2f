import type { FastifyPluginAsync } from 'fastify';
import type { Config } from '../../platform/config.ts';
import { type MessageContentDependencies, messageContentPages } from './content.routes.ts';
import { type MessagePageDependencies, messagePages } from './message.routes.ts';
import { type MessagesPageDependencies, messagesPages } from './messages.routes.ts';
import { createRemoteImages } from './remote-images.ts';
import { type ThreadPageDependencies, threadPages } from './thread.routes.ts';

type Dependencies = Omit<MessagePageDependencies & MessageContentDependencies, 'remoteImages'> &
  MessagesPageDependencies &
  ThreadPageDependencies & { config: Pick<Config, 'SIGNING_KEY'> };

/** The pages of messages and conversations. */
export const mailPages =
  (dependencies: Dependencies): FastifyPluginAsync =>
  async (app) => {
    const all = { ...dependencies, remoteImages: createRemoteImages(dependencies.config.SIGNING_KEY) };
    await app.register(messagesPages(all));
    await app.register(messagePages(all));
    await app.register(messageContentPages(all));
    await app.register(threadPages(all));
  };
