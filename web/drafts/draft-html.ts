import { hasRemoteImages, listFrameLinks } from '../../domain/messages/message-frame.service.ts';

const MAX_LINKS = 50;

/** What the frame of a draft does not show: where links lead, and that images come from other servers. */
export function describeHtml(html: string | null): {
  links: string[];
  moreLinks: number;
  loadsImages: boolean;
} {
  const links = html === null ? [] : [...new Set(listFrameLinks(html))];
  return {
    links: links.slice(0, MAX_LINKS),
    moreLinks: Math.max(0, links.length - MAX_LINKS),
    loadsImages: html !== null && hasRemoteImages(html),
  };
}
