import type { Requester } from './requests.ts';

/** The operations of one group. */
export class Resource {
  protected readonly requester: Requester;

  constructor(requester: Requester) {
    this.requester = requester;
  }
}
