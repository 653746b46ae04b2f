/** The client of a request without a session. */
export interface Client {
  ip: string;
  userAgent: string | null;
  requestId: string;
  /** Value of the cookie that a sign-in page sets; undefined for clients without cookies. */
  browserToken?: string;
}
