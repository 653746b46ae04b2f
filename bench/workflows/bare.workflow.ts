import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

const { nothing } = proxyActivities<{ nothing(input: object): Promise<void> }>({
  startToCloseTimeout: '1 minute',
});
const { report } = proxyLocalActivities<{ report(input: object): Promise<void> }>({
  startToCloseTimeout: '1 minute',
});

/** The baseline of a send and of a webhook delivery: one no-op activity. */
export async function bareActivity(input: object): Promise<void> {
  await nothing(input);
}

/** The baseline of an inbound message: one no-op local activity. */
export async function bareReceive(input: object): Promise<void> {
  await report(input);
}
