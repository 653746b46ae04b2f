/** What became of one recipient, as a signed report or the simulator tells it. */
export interface DeliveryOutcome {
  position: number;
  /** `delayed` is news, not a change of state (RFC 3464 `Action: delayed`). */
  kind: 'delivered' | 'bounced' | 'complained' | 'delayed';
  /** Enhanced status code (RFC 3463); empty where the report has none. */
  statusCode: string | null;
  diagnosticCode: string | null;
  /** RFC 5965 Feedback-Type; for complaints alone. */
  feedbackType?: string;
}

/** What is left to do for the send's own run after folding. */
export type SendState = 'settled' | 'deferred' | 'needs_attention';
