import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { AppError } from '../../platform/errors.ts';

/** A page that a browser gets from a route of the API: an error, or the end of a sign-in at another site. */
export type StandalonePage =
  | { kind: 'problem'; problem: AppError }
  | {
      kind: 'sso-tested';
      checks: readonly { name: string; seen: string | null }[];
      redirectTo: string;
    }
  | { kind: 'sso-confirm'; organizationName: string; email: string; confirmToken: string };

/** Returns the HTML, and sets the headers that it needs. */
export type RenderStandalonePage = (
  request: FastifyRequest,
  reply: FastifyReply,
  page: StandalonePage,
) => string;

declare module 'fastify' {
  interface FastifyInstance {
    /** The pages are registered after the API, and fill this in. */
    standalonePages: { render: RenderStandalonePage };
  }
}

export function installStandalonePages(app: FastifyInstance): void {
  app.decorate('standalonePages', {
    render: () => {
      throw new Error('No pages are registered');
    },
  });
}
