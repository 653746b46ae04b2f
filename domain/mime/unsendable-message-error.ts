/**
 * No message can be built from the stored data, now or later. The reason names no address and no content, because
 * operators read it in workflow histories.
 */
export class UnsendableMessageError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = 'UnsendableMessageError';
  }
}
