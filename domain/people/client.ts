/** The client of a request without a session. */
export interface Client {
  ip: string;
  userAgent: string | null;
  requestId: string;
  /** Value of the cookie that pages set; undefined for clients without cookies. */
  browserToken?: string;
  /** Of the people who have signed in with this browser; undefined for clients without cookies. */
  deviceTokens?: readonly string[];
}
