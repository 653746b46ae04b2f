/** An address object (specification, "Address object"). `email` keeps its case. */
export interface MailAddress {
  email: string;
  name?: string;
}
