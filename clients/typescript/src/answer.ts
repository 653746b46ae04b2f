/** What the service answered, before it was read. */
export interface Received<T> {
  data: T;
  /** Its status and headers; the body has been read. */
  response: Response;
  /** Give it to the operator of the service. */
  requestId: string | null;
}

/** A promise of what an operation answers. `withResponse()` has the status and the headers, too. */
export class Answer<T> implements Promise<T> {
  readonly [Symbol.toStringTag] = 'Answer';
  readonly #received: Promise<Received<T>>;

  constructor(received: Promise<Received<T>>) {
    this.#received = received;
  }

  withResponse(): Promise<Received<T>> {
    return this.#received;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise
  then<Result = T, Failure = never>(
    onFulfilled?: ((value: T) => Result | PromiseLike<Result>) | null,
    // biome-ignore lint/suspicious/noExplicitAny: as in Promise, where callers name the type that they expect
    onRejected?: ((reason: any) => Failure | PromiseLike<Failure>) | null,
  ): Promise<Result | Failure> {
    return this.#received.then(({ data }) => data).then(onFulfilled, onRejected);
  }

  catch<Failure = never>(
    // biome-ignore lint/suspicious/noExplicitAny: as in Promise, where callers name the type that they expect
    onRejected?: ((reason: any) => Failure | PromiseLike<Failure>) | null,
  ): Promise<T | Failure> {
    return this.then(undefined, onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.then().finally(onFinally);
  }
}
