/** Stands for a value while `compileOnce` builds a statement. It can only be bound: nothing can be decided or made of it. */
export class Placeholder {
  readonly name: string;
  readonly #isJson: boolean;

  constructor(name: string, isJson = false) {
    this.name = name;
    this.#isJson = isJson;
  }

  /** For a column of JSON; `null` is the NULL of SQL. */
  asJson(): Placeholder {
    return new Placeholder(this.name, true);
  }

  /** What a run of the statement binds. */
  bind(value: unknown): unknown {
    return this.#isJson && value !== null ? JSON.stringify(value) : value;
  }

  [Symbol.toPrimitive](): never {
    throw new Error(`compileOnce: the value ${this.name} can only be bound, or be named as one to decide by`);
  }

  toJSON(): never {
    return this[Symbol.toPrimitive]();
  }
}
