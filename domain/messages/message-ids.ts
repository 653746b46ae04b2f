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
 * The message ids in a field's value. In-Reply-To of old programs wraps words around the id, and some write it without
 * brackets: where there are brackets only what they enclose counts.
 */
export function messageIdsIn(value: string): string[] {
  const bracketed = [...value.matchAll(/<([^<>]+)>/g)].map(([, id = '']) => id);
  const written =
    bracketed.length > 0 ? bracketed : value.split(/[\s,]+/).filter((word) => word.includes('@'));
  return written.map(normalizeMessageId).filter((id) => id !== '');
}

/** Without angle brackets, white space and folding; empty where nothing usable is left. Its case is kept: ids differ by it. */
export function normalizeMessageId(value: string): string {
  const id = value.replace(/[<>\s\p{Cc}]/gu, '');
  return id.length <= MAX_MESSAGE_ID_CHARACTERS ? id : '';
}

/** Message-IDs as Amazon SES writes them (us-east-1 says `email`); what stands before the @ is what it answered us with. */
const SES_MESSAGE_ID = /^([^@]+)@(?:email|[a-z]{2}(?:-[a-z]+)+-\d)\.amazonses\.com(?:\.cn)?$/i;

/**
 * What the provider that sent a mail calls it, where it replaced the Message-ID with its own.
 *
 * @param id without angle brackets.
 */
export function providerMessageIdIn(id: string): string | null {
  return SES_MESSAGE_ID.exec(id)?.[1] ?? null;
}

/** A mail whose program dropped the ids is matched by its subject for this long after the thread's last message. */
export const SUBJECT_MATCH_WINDOW_MS = 28 * 24 * 3_600_000;

/** What a thread must be like for a mail to join it by subject; its participants must include the mail's sender, too. */
export interface SubjectMatch {
  /** The thread's base subject, compared without case. */
  baseSubject: string;
  /** The thread's last message is not older. */
  since: Date;
}

/**
 * The rule for mail that names no message at all: one that says of itself that it is a reply joins the thread of its
 * base subject. Null where it starts a thread of its own: a mail that names a message, known or not, is never matched
 * by subject, and neither is one whose subject is empty but for the marks.
 */
export function toSubjectMatch(mail: ThreadReferences & { subject: string; at: Date }): SubjectMatch | null {
  if (candidateMessageIds(mail).length > 0 || !isReplySubject(mail.subject)) return null;
  const base = getBaseSubject(mail.subject);
  if (base === '') return null;
  return { baseSubject: base, since: new Date(mail.at.getTime() - SUBJECT_MATCH_WINDOW_MS) };
}
