/** A form as the Stripe SDK encodes it (`items[0][price]=…`), as nested objects. Values stay text. */
export type FormBody = { [name: string]: FormBody | string };

export function parseForm(text: string): FormBody {
  const root: FormBody = {};
  for (const [key, value] of new URLSearchParams(text)) {
    const path = [...key.matchAll(/[^[\]]+/g)].map(([part]) => part);
    let node = root;
    for (const [index, part] of path.entries()) {
      if (index === path.length - 1) node[part] = value;
      else {
        const next = node[part];
        const child = typeof next === 'object' ? next : {};
        node[part] = child;
        node = child;
      }
    }
  }
  return root;
}

export const textOf = (value: FormBody | string | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;

/** Elements of `items[0]…`, in order. */
export const listOf = (value: FormBody | string | undefined): FormBody[] =>
  typeof value === 'object' ? (Object.values(value) as FormBody[]) : [];
