/** Contract of the lifecycle after a failed payment: reminders, suspension, reinstatement. */
export const ENFORCE_PAYMENT_GRACE = 'enforcePaymentGrace';
/** @param generation number of the grace: a later payment of the same subscription may fail, too. */
export const enforcePaymentGraceWorkflowId = (
  organizationId: string,
  subscriptionId: string,
  generation: number,
): string => `payment-grace/${organizationId}/${subscriptionId}/${generation}`;

export interface EnforcePaymentGraceInput {
  graceId: string;
  /** Set if the run continues another one whose history grew long. */
  stage?: PaymentGraceStage;
}

/** Signal: the payment arrived, or the grace was changed; the run reads its row again. */
export const PAYMENT_RECOVERED = 'paymentRecovered';
/** Signal: moves the suspension by a number of days, and ends one that is in force. */
export const EXTEND_GRACE = 'extendGrace';
export interface GraceExtension {
  days: number;
}
export const MAX_EXTENSION_DAYS = 90;

export type PaymentGraceStage = 'waiting' | 'suspended';

/** What the run waits for next. */
export interface PaymentGraceStep {
  stage: PaymentGraceStage;
  /** ISO 8601 UTC. */
  waitUntil: string;
  /** For the Temporal UI. */
  detail: string;
}
