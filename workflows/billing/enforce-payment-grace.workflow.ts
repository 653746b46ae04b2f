import {
  allHandlersFinished,
  condition,
  continueAsNew,
  defineSignal,
  proxyActivities,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { BillingActivities } from '../../activities/billing.activities.ts';
import { DATABASE_STEP } from '../database-step.ts';
import { createStageReporter } from '../stage.ts';
import {
  type EnforcePaymentGraceInput,
  EXTEND_GRACE,
  type GraceExtension,
  MAX_EXTENSION_DAYS,
  PAYMENT_RECOVERED,
  type PaymentGraceStage,
} from './enforce-payment-grace.contract.ts';

const { reviewGrace } = proxyActivities<BillingActivities>({
  startToCloseTimeout: '2 minutes',
  // While Stripe gives no answer, no organization is suspended.
  retry: { initialInterval: '1 second', maximumInterval: '10 minutes' },
});
const { extendGrace } = proxyActivities<BillingActivities>(DATABASE_STEP);

const EXTENSION = `{ "days": 1 to ${MAX_EXTENSION_DAYS} }`;

export const paymentRecovered = defineSignal(PAYMENT_RECOVERED);
export const graceExtended = defineSignal<[GraceExtension]>(EXTEND_GRACE);

/**
 * Follows a failed payment until it is settled. Each step reads the invoice back from Stripe: owners are reminded, the
 * organization is suspended when the grace is over and the invoice is still open, and reinstated when it was paid. The
 * grace's row decides; signals only wake the run. A suspension without an end is reviewed every day for years, so a long
 * history continues in a new run.
 *
 * @returns the result, for the Temporal UI.
 */
export async function enforcePaymentGrace({ graceId, stage }: EnforcePaymentGraceInput): Promise<string> {
  const reporter = createStageReporter<PaymentGraceStage>(stage ?? 'waiting');
  let isWoken = false;
  setHandler(
    paymentRecovered,
    () => {
      isWoken = true;
    },
    { description: 'Reads the invoice back from Stripe now.' },
  );
  setHandler(
    graceExtended,
    async (request) => {
      // Validated, since operators can send the signal from the Temporal UI with any argument.
      if (!isExtension(request)) {
        reporter.report(reporter.current, `Ignored signal: "${EXTEND_GRACE}" takes ${EXTENSION}.`);
        return;
      }
      await extendGrace({ graceId, days: request.days });
      isWoken = true;
    },
    { description: `Moves the suspension, and ends one that is in force: ${EXTENSION}.` },
  );
  for (;;) {
    isWoken = false;
    const step = await reviewGrace({ graceId });
    if (typeof step === 'string') {
      await condition(allHandlersFinished);
      return reporter.end(step);
    }
    reporter.report(step.stage, step.detail);
    await condition(() => isWoken, Math.max(1_000, Date.parse(step.waitUntil) - Date.now()));
    if (workflowInfo().continueAsNewSuggested) {
      await condition(allHandlersFinished);
      // The new run begins with the review that is due now.
      await continueAsNew<typeof enforcePaymentGrace>({ graceId, stage: reporter.current });
    }
  }
}

function isExtension(request: GraceExtension | undefined): request is GraceExtension {
  const days = request?.days;
  return Number.isInteger(days) && Number(days) >= 1 && Number(days) <= MAX_EXTENSION_DAYS;
}
