/** A link to a page of this service. */
export interface PageLink {
  label: string;
  /** With query, such as `/verify-email?token=…`. The configured public URL precedes it. */
  path: string;
}

/** Content of an email, rendered as text and HTML. */
export interface EmailContent {
  subject: string;
  /** A string is a paragraph, a list of pairs a table. */
  body: (string | [name: string, value: string][] | PageLink)[];
  /** Why the recipient gets it. Default: as an owner of the organization. */
  footer?: string;
}
