import type { Transaction } from '../../platform/database/database.ts';
import type { Row } from '../../platform/database/find-rows.ts';
import type { Attachment } from '../attachments/attachment.entity.ts';
import type { Scope } from '../identity/scope.ts';
import type { Inbox } from '../inboxes/inbox.entity.ts';
import type { OutboundContent } from './outbound-content.ts';
import type { Submission } from './submitted-message.ts';

/** A send that becomes a draft: it waits for its time, for the approval of a person, or for both. */
export interface PendingSend {
  scope: Scope;
  inbox: Row<Inbox>;
  fields: OutboundContent & { threadId: string | null; inReplyTo: string | null; sendAt: Date | null };
  submission?: Submission;
  /** Returns the rows of the files, assigned to the draft. */
  attach(draftId: string): Promise<Attachment[]>;
}

/** Creates the draft of a send. Injected, because `outbound` must not import `drafts`. */
export interface DraftCreation<Draft> {
  /** The draft is sent at `sendAt`, after an approval if a policy requires one. */
  schedule(transaction: Transaction, pending: PendingSend): Promise<Draft>;
  /** The draft waits for an approval. */
  requestApproval(transaction: Transaction, pending: PendingSend): Promise<Draft>;
}
