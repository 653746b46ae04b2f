/** The outcome for one recipient, from a report to a signed return path, a provider, or the simulator. */
export interface DeliveryOutcome {
  position: number;
  /** `delayed` is informational and changes no state (RFC 3464 `Action: delayed`). */
  kind: 'delivered' | 'bounced' | 'complained' | 'delayed';
  /** Enhanced status code (RFC 3463); null if the report has none. */
  statusCode: string | null;
  diagnosticCode: string | null;
  /** Feedback-Type (RFC 5965), only for complaints. */
  feedbackType?: string;
}
