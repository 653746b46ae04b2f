/** The client of a request without a session. */
export interface Client {
  ip: string;
  userAgent: string | null;
  requestId: string;
}
