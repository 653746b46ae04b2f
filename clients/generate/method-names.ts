import type { Group, Method, Model } from './model.ts';

/** A call of HTTP within a description, such as `GET /api/v1/inboxes/{id}/messages/wait?since={message id}`. */
const HTTP_CALL = /\b(GET|POST|PUT|PATCH|DELETE) (\/[\w/{}.-]*[\w}])(?:\?(\w+)=?(?:\{[^}]*\})?)?/g;

const shape = (verb: string, path: string): string =>
  `${verb} ${path.replace(/^\/api\/v1/, '').replace(/\{[^}]*\}/g, '{}')}`;

/** The model, whose descriptions name methods instead of HTTP calls. Calls that no method makes stay. */
export function nameMethods(model: Model, print: (group: Group, method: Method) => string): Model {
  const names = new Map(
    model.groups.flatMap((group) =>
      group.methods.map((method) => [shape(method.verb, method.path), print(group, method)] as const),
    ),
  );
  const rename = (text: string): string =>
    text.replace(HTTP_CALL, (call, verb: string, path: string, parameter?: string) => {
      const name = names.get(shape(verb, path));
      if (name === undefined) return call;
      return parameter === undefined ? `\`${name}\`` : `\`${name}\` with \`${parameter}\``;
    });
  return JSON.parse(
    JSON.stringify(model, (key, value) =>
      key === 'description' && typeof value === 'string' ? rename(value) : value,
    ),
  ) as Model;
}
