/** Outcome of a message at a simulated mailbox, in RFC 3464 terms. */
export interface SimulatedOutcome {
  action: 'delivered' | 'relayed' | 'failed' | 'delayed';
  /** Enhanced status code, RFC 3463. */
  status: string;
  /** Diagnostic text of the last hop. */
  diagnostic: string;
  /** The reader reported it as spam after delivery. */
  complains?: boolean;
}

/** A negative reply to RCPT TO. */
export interface SimulatedRefusal {
  code: number;
  message: string;
}

/**
 * The first word of an external address selects the outcome, so that every outcome can be tried: `bounce@`,
 * `transient.two@` and `delayed+x@` do what they say; any other address accepts its mail.
 */
export function simulateOutcome(address: string): SimulatedOutcome {
  switch (firstWord(address)) {
    case 'bounce':
    case 'bounced':
      return {
        action: 'failed',
        status: '5.1.1',
        diagnostic: `550 5.1.1 <${address}>: Recipient address rejected: User unknown`,
      };
    case 'transient':
      return {
        action: 'failed',
        status: '4.4.7',
        diagnostic: `451 4.4.7 <${address}>: Delivery time expired`,
      };
    case 'delayed':
      return {
        action: 'delayed',
        status: '4.4.1',
        diagnostic: `451 4.4.1 <${address}>: No answer from host`,
      };
    case 'complain':
    case 'complained':
      return { action: 'delivered', status: '2.0.0', diagnostic: '250 2.0.0 OK', complains: true };
    default:
      return { action: 'delivered', status: '2.0.0', diagnostic: '250 2.0.0 OK' };
  }
}

/** `reject@` and `defer@` are refused at RCPT TO. */
export function simulateRefusal(address: string): SimulatedRefusal | undefined {
  switch (firstWord(address)) {
    case 'reject':
    case 'rejected':
      return { code: 550, message: `5.1.1 <${address}>: Recipient address rejected: User unknown` };
    case 'defer':
    case 'deferred':
      return { code: 451, message: `4.7.1 <${address}>: Greylisted, try again later` };
    default:
      return undefined;
  }
}

function firstWord(address: string): string {
  return address.toLowerCase().split(/[@+.]/, 1)[0] ?? '';
}
