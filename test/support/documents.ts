import type { SiteFiles } from '../../api/docs/site-files.ts';
import { buildSite } from '../../dev/docs/site.ts';
import type { TestApp } from './test-app.ts';

/** The site of the documents, built from the description of an app when it is first read. */
export function siteOf(app: () => TestApp): () => Promise<SiteFiles> {
  let site: SiteFiles | undefined;
  return async () => {
    site ??= buildSite(app().contract.description);
    return site;
  };
}
