import { getBaseSubject, isReplySubject } from '../mime/subject.ts';

/** The header fields that place a message in a thread. */
export interface ThreadReferences {
  /** The field's value, with or without angle brackets; null if there is none. */
  inReplyTo: string | null;
  /** Oldest first, with or without angle brackets. */
  references: string[];
}

/** Only the newest ids of a longer chain are looked up. */
const MAX_CANDIDATES = 100;
/** RFC 5322 section 2.1.1 limits lines to 998 characters, and an id cannot be folded. */
const MAX_MESSAGE_ID_CHARACTERS = 998;

/**
 * The message ids that may identify the thread, best first: In-Reply-To, then References from last to first (RFC 5322
 * section 3.6.4 appends the parent at the end). The first known id decides.
 *
 * @returns distinct ids without angle brackets; empty if the message references none.
 */
export function candidateMessageIds({ inReplyTo, references }: ThreadReferences): string[] {
  const parents = messageIdsIn(inReplyTo ?? '');
  const chain = references.flatMap(messageIdsIn).reverse();
  return [...new Set([...parents, ...chain])].slice(0, MAX_CANDIDATES);
}

/**
 * Returns the message ids in a field's value. Old clients add words to In-Reply-To, and some omit the brackets: if the
 * value has brackets, only their contents count.
 */
export function messageIdsIn(value: string): string[] {
  const bracketed = [...value.matchAll(/<([^<>]+)>/g)].map(([, id = '']) => id);
  const ids = bracketed.length > 0 ? bracketed : value.split(/[\s,]+/).filter((word) => word.includes('@'));
  return ids.map(normalizeMessageId).filter((id) => id !== '');
}

/** Removes angle brackets, white space and folding. Keeps the case, which distinguishes ids. Empty if nothing is left. */
function normalizeMessageId(value: string): string {
  const id = value.replace(/[<>\s\p{Cc}]/gu, '');
  return id.length <= MAX_MESSAGE_ID_CHARACTERS ? id : '';
}

/** Message-IDs that Amazon SES writes (`email` in us-east-1). The part before the @ is the id of its API response. */
const SES_MESSAGE_ID = /^([^@]+)@(?:email|[a-z]{2}(?:-[a-z]+)+-\d)\.amazonses\.com(?:\.cn)?$/i;

/**
 * Returns the provider's id of a message whose Message-ID the provider replaced; null for any other Message-ID.
 *
 * @param id without angle brackets.
 */
export function providerMessageIdIn(id: string): string | null {
  return SES_MESSAGE_ID.exec(id)?.[1] ?? null;
}

/** A reply without references matches a thread by subject for this long after the thread's last message. */
const SUBJECT_MATCH_WINDOW_MS = 28 * 24 * 3_600_000;

/** The thread that a message may join by subject. The sender must also be one of its participants. */
export interface SubjectMatch {
  /** The thread's base subject, compared without case. */
  baseSubject: string;
  /** Earliest time of the thread's last message. */
  since: Date;
}

/**
 * The subject rule for a message without references: a reply, by its subject prefix, joins the thread of its base
 * subject.
 *
 * @returns null if the message starts a thread: it has references, known or not, no reply prefix, or an empty base
 * subject.
 */
export function toSubjectMatch(mail: ThreadReferences & { subject: string; at: Date }): SubjectMatch | null {
  if (candidateMessageIds(mail).length > 0 || !isReplySubject(mail.subject)) return null;
  const base = getBaseSubject(mail.subject);
  if (base === '') return null;
  return { baseSubject: base, since: new Date(mail.at.getTime() - SUBJECT_MATCH_WINDOW_MS) };
}
