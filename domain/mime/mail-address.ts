/** An address object (specification, "Address object"). The case of `email` is preserved. */
export interface MailAddress {
  email: string;
  name?: string;
}
