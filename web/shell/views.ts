import { join } from 'node:path';
import { Eta } from 'eta';
import { escapeHtml } from '../../platform/escape-html.ts';

/** Renders the templates of `web/`. Values are escaped. */
export interface Views {
  /** @param name a file of `web/` without its extension, such as `keys/keys`. */
  render(name: string, data: object): string;
}

export function createViews(): Views {
  const eta = new Eta({
    views: join(import.meta.dirname, '..'),
    autoEscape: true,
    autoTrim: false,
    cache: true,
    escapeFunction: escapeHtml,
    functionHeader: 'const { ui, link, can, mayChange } = it;',
  });
  return { render: (name, data) => eta.render(`./${name}`, data) };
}
