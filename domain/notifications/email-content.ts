/** Content of an email, rendered as text and HTML. */
export interface EmailContent {
  subject: string;
  /** A string is a paragraph, a list of pairs a table. */
  body: (string | [name: string, value: string][])[];
  /** Why the recipient gets it. Default: as an owner of the organization. */
  footer?: string;
}
