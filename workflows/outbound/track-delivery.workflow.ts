import { condition, defineSignal, setCurrentDetails, setHandler } from '@temporalio/workflow';
import { formatTime } from '../stage.ts';
import {
  DELIVERY_OUTCOME_RECORDED,
  type DeliveryOutcomeSignal,
  TRACKING_WINDOW_MS,
  type TrackDeliveryInput,
} from './track-delivery.contract.ts';

export const deliveryOutcomeRecorded = defineSignal<[DeliveryOutcomeSignal]>(DELIVERY_OUTCOME_RECORDED);

/**
 * Waits for the delivery reports of a sent message, which lets operators see and end the wait. It changes no data:
 * reports are applied to the database directly, and each signals this run the number of open recipients.
 */
export async function trackDelivery({ openRecipients }: TrackDeliveryInput): Promise<string> {
  let open = openRecipients;
  const until = formatTime(Date.now() + TRACKING_WINDOW_MS);
  const showDetails = () =>
    setCurrentDetails(`Waiting for delivery reports of ${open} recipient(s) until ${until}.`);
  showDetails();
  setHandler(deliveryOutcomeRecorded, (outcome) => {
    // An operator may send the signal without an argument. Signals may arrive out of order; the number only decreases.
    if (typeof outcome?.openRecipients === 'number') open = Math.min(open, outcome.openRecipients);
    showDetails();
  });
  const isComplete = await condition(() => open === 0, TRACKING_WINDOW_MS);
  return isComplete ? 'every recipient has an outcome' : `${open} recipient(s) without a report`;
}
