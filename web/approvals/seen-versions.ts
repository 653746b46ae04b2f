import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Cookies } from '../../api/plugins/cookies.ts';

const COOKIE = 'seen_drafts';
/** More than a person has open at a time; the cookie stays below 1 KB. */
const MAX_DRAFTS = 20;
const MAX_AGE_SECONDS = 30 * 86_400;
const ENTRY = /^(drf_[A-Za-z0-9_-]{1,40})\.([1-9]\d{0,8})$/;

/**
 * Which version of a draft that waits a person saw last in this browser, so that the next look can show what changed. It
 * decides nothing: what a decision holds for is the version in its form.
 */
export function createSeenVersions(cookies: Cookies) {
  /** Newest first. Those of another person who used the browser do not count. */
  function read(request: FastifyRequest): Map<string, number> {
    const [owner, ...entries] = (cookies.read(request, COOKIE) ?? '').split('|');
    if (owner !== request.scope.actor.id) return new Map();
    return new Map(
      entries.slice(0, MAX_DRAFTS).flatMap((entry) => {
        const [, draftId, version] = ENTRY.exec(entry) ?? [];
        return draftId === undefined ? [] : [[draftId, Number(version)] as const];
      }),
    );
  }

  return {
    /** Undefined if the person has not seen the draft, or long ago. */
    of: (request: FastifyRequest, draftId: string): number | undefined => read(request).get(draftId),

    remember(request: FastifyRequest, reply: FastifyReply, draft: { id: string; version: number }): void {
      const seen = read(request);
      if (seen.get(draft.id) === draft.version) return;
      seen.delete(draft.id);
      const entries = [[draft.id, draft.version] as const, ...seen].slice(0, MAX_DRAFTS);
      const value = [request.scope.actor.id, ...entries.map(([id, version]) => `${id}.${version}`)].join('|');
      cookies.set(reply, COOKIE, value, { maxAgeSeconds: MAX_AGE_SECONDS });
    },
  };
}
