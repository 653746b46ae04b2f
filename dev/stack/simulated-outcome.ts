/** What becomes of a mail at the mailbox it was sent to, in RFC 3464 terms. */
export interface SimulatedOutcome {
  action: 'delivered' | 'relayed' | 'failed' | 'delayed';
  /** Enhanced status code, RFC 3463. */
  status: string;
  /** What the last hop said. */
  diagnostic: string;
  /** The reader called it spam after delivery. */
  complains?: boolean;
}

/** An answer to RCPT TO. */
export interface SimulatedRefusal {
  code: number;
  message: string;
}

/**
 * The first word of an address outside the service decides what happens to its mail, so that a person can watch each
 * outcome: `bounce@`, `transient.two@` and `delayed+x@` do what they say, any other address takes its mail.
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

/** `reject@` and `defer@` are turned away before the mail is sent. */
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
