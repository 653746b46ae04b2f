export { recheckDomains } from './domains/recheck-domains.workflow.ts';
export { verifyDomain } from './domains/verify-domain.workflow.ts';
export { sendScheduledDraft } from './drafts/send-scheduled-draft.workflow.ts';
export { reconcile } from './maintenance/reconcile.workflow.ts';
export { receiveMessage } from './messages/receive-message.workflow.ts';
export { sendMessage } from './messages/send-message.workflow.ts';
export { trackDelivery } from './messages/track-delivery.workflow.ts';
export { deliverWebhook } from './webhooks/deliver-webhook.workflow.ts';
