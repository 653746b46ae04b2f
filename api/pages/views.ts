import { join } from 'node:path';
import { Eta } from 'eta';

/** Renders the templates of a folder. Values are escaped; `templates/layout.eta` surrounds each page. */
export interface Views {
  /** @param name a file of `templates/` without its extension. */
  render(name: string, data: object): string;
}

export function createViews(): Views {
  const eta = new Eta({
    views: join(import.meta.dirname, 'templates'),
    autoEscape: true,
    autoTrim: false,
    cache: true,
  });
  return { render: (name, data) => eta.render(`./${name}`, data) };
}
