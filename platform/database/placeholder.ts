/** What Kysely looks for in a value. */
const LOOKED_FOR = new Set<PropertyKey>([
  'expression',
  'expressionType',
  'isSqlCommentNode',
  'toOperationNode',
]);

/**
 * Stands for a value while `compileOnce` builds a statement. It can only be bound: looking for a property of it, or making text
 * or JSON of it, is an error. Code that compares it, or asks whether it is truthy, goes unnoticed.
 */
export class Placeholder {
  readonly name: string;
  private readonly isJson: boolean;

  constructor(name: string, isJson = false) {
    this.name = name;
    this.isJson = isJson;
    // biome-ignore lint/correctness/noConstructorReturn: only a proxy sees which properties are looked for.
    return new Proxy(this, { has, get });
  }

  /** For a column of JSON; `null` is the NULL of SQL. */
  asJson(): Placeholder {
    return new Placeholder(this.name, true);
  }

  /** What a run of the statement binds. */
  bind(value: unknown): unknown {
    return this.isJson && value !== null ? JSON.stringify(value) : value;
  }

  [Symbol.toPrimitive](): never {
    return refuse(this);
  }

  toJSON(): never {
    return refuse(this);
  }
}

function has(placeholder: Placeholder, property: PropertyKey): boolean {
  return LOOKED_FOR.has(property) ? false : property in placeholder || refuse(placeholder);
}

function get(placeholder: Placeholder, property: PropertyKey): unknown {
  return property in placeholder || LOOKED_FOR.has(property) || typeof property === 'symbol'
    ? placeholder[property as keyof Placeholder]
    : refuse(placeholder);
}

function refuse({ name }: Placeholder): never {
  throw new Error(`compileOnce: the value ${name} can only be bound, or be named as one to decide by`);
}
