import type { ImmediateReport, MailTransport, TransmissionResult } from './mail-transport.ts';

/** Local parts of `simulator.<shared domain>` and what becomes of mail to them. */
export const SIMULATED_OUTCOMES = ['delivered', 'bounced', 'transient', 'complained', 'rejected'] as const;
export type SimulatedOutcome = (typeof SIMULATED_OUTCOMES)[number];

/** Where the simulator's addresses are. */
export function simulatorDomainOf(mailDomain: string): string {
  return `simulator.${mailDomain.toLowerCase()}`;
}

/**
 * The outcome an address of the simulator's domain stands for (`bounced+case-7@simulator.example.com`), or null for
 * every other address. An unknown local part there has no mailbox, so it bounces.
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
    { action: 'complained', status: '2.0.0', diagnosticCode: 'simulated: marked as spam by its reader' },
  ],
};

export interface SimulatorTransport extends MailTransport {
  /** Whether the address is one of the simulator's own, to which nothing is sent in any environment. */
  isSimulatorAddress(address: string): boolean;
}

/** Sends nothing. Serves sandbox environments, and the simulator's addresses in every environment. */
export function createSimulatorTransport({ mailDomain }: { mailDomain: string }): SimulatorTransport {
  return {
    name: 'simulator',
    isSimulatorAddress: (address) => findSimulatedOutcome(address, mailDomain) !== null,
    async transmit({ recipient, envelopeId }): Promise<TransmissionResult> {
      const outcome = findSimulatedOutcome(recipient, mailDomain) ?? 'delivered';
      if (outcome === 'rejected') {
        const response = '550 5.7.1 simulated: the message is refused';
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
