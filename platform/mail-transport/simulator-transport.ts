import type { ImmediateReport, MailTransport, TransmissionResult } from './mail-transport.ts';

/** Local parts of `simulator.<shared domain>`. Each names the outcome of a message to it. */
const SIMULATED_OUTCOMES = ['delivered', 'bounced', 'transient', 'complained', 'rejected'] as const;
export type SimulatedOutcome = (typeof SIMULATED_OUTCOMES)[number];

/** The domain of the simulator's addresses. */
export function simulatorDomainOf(mailDomain: string): string {
  return `simulator.${mailDomain.toLowerCase()}`;
}

/**
 * Returns the outcome that an address of the simulator's domain requests (`bounced+case-7@simulator.example.com`), or
 * null for any other address. An unknown local part bounces, because it has no mailbox.
 */
export function findSimulatedOutcome(address: string, mailDomain: string): SimulatedOutcome | null {
  const at = address.lastIndexOf('@');
  if (address.slice(at + 1).toLowerCase() !== simulatorDomainOf(mailDomain)) return null;
  const localPart = address.slice(0, at).toLowerCase().replace(/\+.*$/, '');
  return SIMULATED_OUTCOMES.find((outcome) => outcome === localPart) ?? 'bounced';
}

const REPORTS_BY_OUTCOME: Record<Exclude<SimulatedOutcome, 'rejected'>, ImmediateReport[]> = {
  delivered: [{ action: 'delivered', status: '2.0.0', diagnosticCode: 'smtp; 250 2.0.0 simulated delivery' }],
  bounced: [
    { action: 'failed', status: '5.1.1', diagnosticCode: 'smtp; 550 5.1.1 simulated: no such mailbox' },
  ],
  transient: [
    { action: 'failed', status: '4.2.2', diagnosticCode: 'smtp; 452 4.2.2 simulated: mailbox full' },
  ],
  complained: [
    { action: 'delivered', status: '2.0.0', diagnosticCode: 'smtp; 250 2.0.0 simulated delivery' },
    { action: 'complained', status: '2.0.0', diagnosticCode: 'simulated: marked as spam by the recipient' },
  ],
};

export interface SimulatorTransport extends MailTransport {
  /** Whether the address belongs to the simulator. No environment sends to such an address. */
  isSimulatorAddress(address: string): boolean;
}

/** Sends nothing. It handles sandbox environments, and the simulator's addresses in every environment. */
export function createSimulatorTransport({ mailDomain }: { mailDomain: string }): SimulatorTransport {
  return {
    name: 'simulator',
    isSimulatorAddress: (address) => findSimulatedOutcome(address, mailDomain) !== null,
    async transmit({ recipient, envelopeId }): Promise<TransmissionResult> {
      const outcome = findSimulatedOutcome(recipient, mailDomain) ?? 'delivered';
      if (outcome === 'rejected') {
        const response = '550 5.7.1 simulated: message refused';
        return { kind: 'refused', scope: 'message', statusCode: '5.7.1', response };
      }
      return {
        kind: 'accepted',
        providerMessageId: `sim-${envelopeId}`,
        response: '250 2.0.0 simulated: accepted',
        reportsDelivery: false,
        reports: REPORTS_BY_OUTCOME[outcome],
      };
    },
    async close() {},
  };
}
