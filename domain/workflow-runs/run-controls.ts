import { MAIL_ANNOUNCEMENT } from '../../workflows/announcements/mail-announcement.contract.ts';
import {
  ENFORCE_PAYMENT_GRACE,
  PAYMENT_RECOVERED,
} from '../../workflows/billing/enforce-payment-grace.contract.ts';
import { SYNC_SUBSCRIPTION } from '../../workflows/billing/sync-subscription.contract.ts';
import { CANCEL_PURGE, PURGE_ACCOUNT, PURGE_ORGANIZATION } from '../../workflows/deletions/purge.contract.ts';
import { CHECK_NOW, VERIFY_DOMAIN } from '../../workflows/domains/verify-domain.contract.ts';
import {
  SEND_SCHEDULED_DRAFT,
  UNSCHEDULE_DRAFT,
} from '../../workflows/drafts/send-scheduled-draft.contract.ts';
import { CANCEL_EXPORT, EXPORT_ORGANIZATION } from '../../workflows/exports/export-organization.contract.ts';
import {
  DISCARD_RECEIPT,
  RECEIVE_MESSAGE,
  RETRY_RECEIPT_NOW,
} from '../../workflows/inbound/receive-message.contract.ts';
import { PURGE_INBOX } from '../../workflows/inboxes/purge-inbox.contract.ts';
import { MOVE_THREAD_MESSAGES } from '../../workflows/messages/move-thread-messages.contract.ts';
import { CANCEL_SEND, RETRY_SEND_NOW, SEND_MESSAGE } from '../../workflows/outbound/send-message.contract.ts';
import { SETTLE_HELD_WORK } from '../../workflows/suspensions/settle-held-work.contract.ts';
import { RELEASE_HELD } from '../../workflows/toggles/release-held.contract.ts';
import {
  CANCEL_DELIVERY,
  DELIVER_WEBHOOK,
  RETRY_DELIVERY_NOW,
} from '../../workflows/webhooks/deliver-webhook.contract.ts';
import { PROBE_ENDPOINT, PROBE_NOW } from '../../workflows/webhooks/probe-endpoint.contract.ts';

/** How staff control the runs of a workflow type. */
export interface RunControls {
  /** Signal that retries now; default: waiting activities are attempted. */
  retry?: string;
  /** Signal that cancels; default: the run itself is canceled. */
  cancel?: string;
  /** Whether the cancel signal takes the reason. */
  cancelTakesReason?: boolean;
  /** What to do instead of canceling, if the reconciler would start the run again. */
  cancelInstead?: string;
}

const CONTROLS: Record<string, RunControls> = {
  [SEND_MESSAGE]: { retry: RETRY_SEND_NOW, cancel: CANCEL_SEND },
  [RECEIVE_MESSAGE]: { retry: RETRY_RECEIPT_NOW, cancel: DISCARD_RECEIPT, cancelTakesReason: true },
  [DELIVER_WEBHOOK]: { retry: RETRY_DELIVERY_NOW, cancel: CANCEL_DELIVERY },
  [PROBE_ENDPOINT]: {
    retry: PROBE_NOW,
    cancelInstead:
      'Disable the endpoint, or cancel its deliveries (POST /api/v1/webhooks/endpoints/{id}/cancel-pending).',
  },
  [VERIFY_DOMAIN]: { retry: CHECK_NOW },
  [SEND_SCHEDULED_DRAFT]: { cancel: UNSCHEDULE_DRAFT },
  [EXPORT_ORGANIZATION]: { cancel: CANCEL_EXPORT },
  [PURGE_ACCOUNT]: { cancel: CANCEL_PURGE },
  [PURGE_ORGANIZATION]: { cancel: CANCEL_PURGE },
  [PURGE_INBOX]: { cancelInstead: 'Settle the messages of the inbox that are still being sent.' },
  [ENFORCE_PAYMENT_GRACE]: {
    retry: PAYMENT_RECOVERED,
    cancelInstead: 'To give more time, extend the grace: POST /api/v1/admin/orgs/{id}/extend-grace.',
  },
  [SYNC_SUBSCRIPTION]: { cancelInstead: 'It ends when Stripe has answered; retry it.' },
  [SETTLE_HELD_WORK]: { cancelInstead: 'Suspend the organization to hold its work again.' },
  [RELEASE_HELD]: { cancelInstead: 'Switch the toggle off to hold the work again.' },
  [MAIL_ANNOUNCEMENT]: {
    cancelInstead: 'Withdraw the announcement: DELETE /api/v1/admin/notifications/{id}.',
  },
  [MOVE_THREAD_MESSAGES]: { cancelInstead: 'It ends when all messages are moved; retry it.' },
};

export const controlsOf = (type: string): RunControls => CONTROLS[type] ?? {};
