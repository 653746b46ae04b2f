import { condition, defineSignal, setCurrentDetails, setHandler } from '@temporalio/workflow';
import {
  DELIVERY_OUTCOME_RECORDED,
  type DeliveryOutcome,
  TRACKING_WINDOW_MS,
  type TrackDeliveryInput,
} from './track-delivery.contract.ts';

export const deliveryOutcomeRecorded = defineSignal<[DeliveryOutcome]>(DELIVERY_OUTCOME_RECORDED);

/**
 * The wait for delivery reports of a sent message, for people to see and stop. It changes nothing: reports fold into
 * the database by themselves and only tell this run how many recipients are left.
 */
export async function trackDelivery({ openRecipients }: TrackDeliveryInput): Promise<string> {
  let open = openRecipients;
  const show = () => setCurrentDetails(`Waiting for the outcome of ${open} recipient(s).`);
  show();
  setHandler(deliveryOutcomeRecorded, (outcome) => {
    // Anybody may send a signal from the Temporal UI, with or without its argument; signals overtake one another, but
    // the number only falls.
    if (typeof outcome?.openRecipients === 'number') open = Math.min(open, outcome.openRecipients);
    show();
  });
  const reported = await condition(() => open === 0, TRACKING_WINDOW_MS);
  return reported ? 'every recipient has an outcome' : `${open} recipient(s) without a report`;
}
