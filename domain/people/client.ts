/** The client of a request without a session. */
export interface Client {
  ip: string;
  userAgent: string | null;
  requestId: string;
  /** Value of the cookie that pages set; undefined for clients without cookies. */
  browserToken?: string;
}
