import { describe, expect, test } from '@jest/globals';
import {
  createSimulatorTransport,
  findSimulatedOutcome,
} from '../../platform/mail-transport/simulator-transport.ts';

const transport = createSimulatorTransport({ mailDomain: 'agents.test' });

function transmit(recipient: string) {
  return transport.transmit({
    sender: 'bounces+token@bounces.agents.test',
    recipient,
    openRaw: () => Promise.reject(new Error('the simulator reads no message')),
    sizeBytes: 1,
    envelopeId: 'msg_01.0',
  });
}

describe('simulator', () => {
  test.each([
    ['delivered@simulator.agents.test', 'delivered'],
    ['Bounced+Case-7@Simulator.Agents.Test', 'bounced'],
    ['transient@simulator.agents.test', 'transient'],
    ['complained+x+y@simulator.agents.test', 'complained'],
    ['rejected@simulator.agents.test', 'rejected'],
    ['nobody-knows@simulator.agents.test', 'bounced'],
    ['bounced@agents.test', null],
    ['bounced@simulator.agents.test.example.com', null],
    ['bounced@example.com', null],
  ])('maps %s to %s', (address, expected) => {
    expect(findSimulatedOutcome(address, 'agents.test')).toBe(expected);
  });

  test.each([
    ['delivered@simulator.agents.test', [{ action: 'delivered', status: '2.0.0' }]],
    ['bounced@simulator.agents.test', [{ action: 'failed', status: '5.1.1' }]],
    ['transient@simulator.agents.test', [{ action: 'failed', status: '4.2.2' }]],
    ['complained@simulator.agents.test', [{ action: 'delivered' }, { action: 'complained' }]],
    ['anybody@example.com', [{ action: 'delivered', status: '2.0.0' }]],
  ])('accepts a message to %s and reports its outcome', async (recipient, reports) => {
    expect(await transmit(recipient)).toMatchObject({
      kind: 'accepted',
      providerMessageId: 'sim-msg_01.0',
      reportsDelivery: false,
      reports,
    });
  });

  test('refuses a message to rejected@', async () => {
    expect(await transmit('rejected+1@simulator.agents.test')).toMatchObject({
      kind: 'refused',
      scope: 'message',
      statusCode: '5.7.1',
    });
  });
});
