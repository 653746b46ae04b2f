import { expect, test } from '@jest/globals';
import { decodeEnd, type RawEvent } from '../../platform/temporal-runs/decode-run.ts';

const payload = (value: unknown) => ({ data: Buffer.from(JSON.stringify(value)) });
const held = { message: 'The message is held.', applicationFailureInfo: { type: 'HeldBySuspension' } };

test.each<[string, RawEvent, ReturnType<typeof decodeEnd>]>([
  [
    'completed',
    { workflowExecutionCompletedEventAttributes: { result: { payloads: [payload('sent')] } } },
    { result: 'sent', failure: null },
  ],
  [
    'completed with a summary',
    { workflowExecutionCompletedEventAttributes: { result: { payloads: [payload({ recovered: 2 })] } } },
    { result: '{"recovered":2}', failure: null },
  ],
  [
    'failed',
    { workflowExecutionFailedEventAttributes: { failure: held } },
    { result: null, failure: { type: 'HeldBySuspension', message: 'The message is held.' } },
  ],
  [
    'failed because an activity did',
    { workflowExecutionFailedEventAttributes: { failure: { message: 'Activity task failed', cause: held } } },
    { result: null, failure: { type: 'HeldBySuspension', message: 'The message is held.' } },
  ],
  [
    'terminated',
    { workflowExecutionTerminatedEventAttributes: { reason: 'Ticket 7' } },
    { result: null, failure: { type: 'Terminated', message: 'Ticket 7' } },
  ],
  [
    'timed out',
    { workflowExecutionTimedOutEventAttributes: {} },
    { result: null, failure: { type: 'TimedOut', message: 'The run did not end in time.' } },
  ],
  ['canceled', { workflowExecutionCanceledEventAttributes: {} }, { result: null, failure: null }],
])('the end of a run that was %s', (_name, event, end) => {
  expect(decodeEnd(event)).toEqual(end);
});
