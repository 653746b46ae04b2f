import { json } from '../../platform/database/json.ts';
import { FINDINGS_VERSION } from '../mime/message-findings.ts';
import type { ParsedInboundMail } from '../mime/parser/pool.ts';

/** The columns of a message for what its parser found. */
export function findingColumns({
  codes,
  links,
  allLinks,
  hasMoreLinks,
  invites,
  injection,
}: Pick<ParsedInboundMail, 'codes' | 'links' | 'allLinks' | 'hasMoreLinks' | 'invites' | 'injection'>) {
  return {
    codes: json(codes),
    links: json(links),
    all_links: json(allLinks),
    has_more_links: hasMoreLinks,
    invites: json(invites),
    injection: json(injection),
    findings_version: FINDINGS_VERSION,
  };
}
