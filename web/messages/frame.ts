import { createHash } from 'node:crypto';
import type { FastifyReply } from 'fastify';

/** Mail on paper, also in a dark browser: senders choose colors for a white page. */
const STYLE =
  'html{color-scheme:light;background:#fff;color:#1a1d23;font:15px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}body{margin:12px}img{max-width:100%;height:auto}table{max-width:100%}';
const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Links open new tabs, and nothing else works: no script, form, download, or access to the page around. `messages/frame.eta` has the same. */
const SANDBOX = 'allow-popups allow-popups-to-escape-sandbox';

const policyOf = (images: string): string =>
  [
    `sandbox ${SANDBOX}`,
    "default-src 'none'",
    `style-src-elem 'sha256-${STYLE_HASH}'`,
    "style-src-attr 'unsafe-inline'",
    `img-src ${images}`,
    "form-action 'none'",
    "base-uri 'none'",
    "frame-ancestors 'self'",
  ].join('; ');

/** Of text that a browser must neither interpret nor frame. */
const TEXT_POLICY =
  "sandbox; default-src 'none'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

export interface FrameContent {
  /** Sanitized, with prepared links and images (`prepareFrameHtml`). Null for a message without HTML that can be shown. */
  html: string | null;
  /** Images of other servers, for this answer alone. */
  allowsRemoteImages?: boolean;
}

/** Sends the HTML of a message for the frame of a page (`messages/frame.eta`), with a policy of its own. */
export function sendFrame(
  reply: FastifyReply,
  { html, allowsRemoteImages = false }: FrameContent,
): FastifyReply {
  const content = html ?? '<p>The HTML of this message cannot be shown. Read its text instead.</p>';
  return reply
    .headers({
      'content-security-policy': policyOf(allowsRemoteImages ? 'data: https:' : 'data:'),
      'x-robots-tag': 'noindex',
    })
    .type('text/html; charset=utf-8')
    .send(
      `<!doctype html><html lang="und"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Message</title><style>${STYLE}</style></head><body dir="auto">${content}</body></html>`,
    );
}

/** Sends what strangers wrote as plain text, whatever it looks like. */
export function sendPlainText(reply: FastifyReply, text: Parameters<FastifyReply['send']>[0]): FastifyReply {
  return reply
    .headers({ 'content-security-policy': TEXT_POLICY, 'x-robots-tag': 'noindex' })
    .type('text/plain; charset=utf-8')
    .send(text);
}
