import { proxyActivities, proxyLocalActivities } from '@temporalio/workflow';

const { nothing } = proxyActivities<{ nothing(input: object): Promise<void> }>({
  startToCloseTimeout: '1 minute',
});
const { nothingLocal, report } = proxyLocalActivities<{
  nothingLocal(input: object): Promise<void>;
  report(input: object): Promise<void>;
}>({
  startToCloseTimeout: '1 minute',
});

/** A baseline of a send: the same activities, which do nothing. */
export async function bareSend(input: object): Promise<void> {
  await nothingLocal(input);
  await nothing(input);
}

/** The baseline of a webhook delivery, and the other one of a send: one no-op activity. */
export async function bareActivity(input: object): Promise<void> {
  await nothing(input);
}

/** The baseline of an inbound message: one no-op local activity. */
export async function bareReceive(input: object): Promise<void> {
  await report(input);
}
