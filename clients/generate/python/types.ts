import type { NamedType, Type } from '../schema-types.ts';
import { quote } from './text.ts';

/** Whether a type belongs to what is sent or to what is answered: requests are closed, answers are open. */
export type Side = 'request' | 'answer';

/** Which named types each side needs, and how types are written. */
export class TypeNames {
  readonly #named: Map<string, NamedType>;

  constructor(types: NamedType[]) {
    this.#named = new Map(types.map((type) => [type.name, type]));
  }

  get(name: string): NamedType {
    const found = this.#named.get(name);
    if (!found) throw new Error(`The model has no type ${name}`);
    return found;
  }

  /** The named types that these types consist of, by name. */
  reachable(types: Type[]): NamedType[] {
    const found = new Map<string, NamedType>();
    const visit = (type: Type): void => {
      if (type.kind === 'list') visit(type.items);
      if (type.kind === 'map') visit(type.values);
      if (type.kind === 'union') type.branches.forEach(visit);
      if (type.kind !== 'reference' || found.has(type.name)) return;
      const named = this.get(type.name);
      found.set(type.name, named);
      if (named.kind === 'alias') visit(named.type);
      else for (const field of named.fields) visit(field.type);
    };
    types.forEach(visit);
    return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** `prefix` stands before the names of classes: `types.`. */
  write(type: Type, side: Side, prefix = ''): string {
    const parts = [...new Set(this.parts(type, side, prefix))];
    const branches = parts.filter((part) => part !== 'None');
    const union = branches.length > 1 ? `Union[${branches.join(', ')}]` : (branches[0] ?? 'None');
    return branches.length < parts.length && branches.length > 0 ? `Optional[${union}]` : union;
  }

  /** The branches of a union, or the type alone. */
  parts(type: Type, side: Side, prefix = ''): string[] {
    switch (type.kind) {
      case 'string':
        return type.format === 'date-time' && side === 'request' ? ['str', 'datetime'] : ['str'];
      case 'integer':
        return ['int'];
      case 'number':
        return ['float'];
      case 'boolean':
        return ['bool'];
      case 'null':
        return ['None'];
      case 'unknown':
        return ['Any'];
      case 'literal':
        return [
          `Literal[${typeof type.value === 'string' ? quote(type.value) : type.value ? 'True' : 'False'}]`,
        ];
      case 'enumeration':
        return side === 'answer' ? ['str'] : [`Literal[${type.values.map(quote).join(', ')}]`];
      case 'list':
        return [`${side === 'answer' ? 'List' : 'Sequence'}[${this.write(type.items, side, prefix)}]`];
      case 'map':
        return [`${side === 'answer' ? 'Dict' : 'Mapping'}[str, ${this.write(type.values, side, prefix)}]`];
      case 'union':
        return type.branches.flatMap((branch) => this.parts(branch, side, prefix));
      case 'reference':
        return this.#reference(type.name, side, prefix);
    }
  }

  /** Only classes, and closed enumerations of requests, are written by name: a union says more than its name. */
  #reference(name: string, side: Side, prefix: string): string[] {
    const named = this.get(name);
    if (named.kind === 'object') return [prefix + name];
    if (isWrittenByName(named, side)) return [prefix + name];
    return this.parts(named.type, side, prefix);
  }

  /** The values that a field of an answer may have, as far as they are known. */
  knownValues(type: Type): string[] {
    if (type.kind === 'enumeration') return type.values;
    if (type.kind === 'list') return this.knownValues(type.items);
    if (type.kind === 'union') return type.branches.flatMap((branch) => this.knownValues(branch));
    if (type.kind !== 'reference') return [];
    const named = this.get(type.name);
    return named.kind === 'alias' ? this.knownValues(named.type) : [];
  }
}

/** Whether an alias has a name in Python, too. */
export const isWrittenByName = (named: NamedType, side: Side): boolean =>
  named.kind === 'alias' &&
  (side === 'request' ? ['enumeration', 'union'].includes(named.type.kind) : named.name === 'Event');
