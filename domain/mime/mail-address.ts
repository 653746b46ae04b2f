/** An address object (specification, "Address object"). `email` keeps the case it was given in. */
export interface MailAddress {
  email: string;
  name?: string;
}
