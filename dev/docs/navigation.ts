/** One guide of the site, from a Markdown file of the repository. */
export interface GuideEntry {
  /** From the root of the repository. */
  file: string;
  /** Path below /docs; empty for the first page. */
  slug: string;
  /** Shorter than the page's own title, for the list of pages. */
  label?: string;
  /** In place of its main heading, if that is the name of a package. */
  title?: string;
}

export interface NavigationGroup {
  title: string;
  /** For those who call the service, or for those who run or change it. */
  audience: 'users' | 'operators' | 'contributors';
  guides: readonly GuideEntry[];
}

/** A guide whose file is docs/{slug}.md. */
const guide = (slug: string, label?: string): GuideEntry => ({
  file: `docs/${slug}.md`,
  slug,
  ...(label === undefined ? {} : { label }),
});

/** The guides in the order in which a new user reads them. A guard test finds a page of docs/ that is missing here. */
export const NAVIGATION: readonly NavigationGroup[] = [
  {
    title: 'Get started',
    audience: 'users',
    guides: [
      { file: 'docs/README.md', slug: '', label: 'Overview' },
      guide('quickstart', 'Quickstart'),
      guide('recipes'),
      {
        file: 'clients/typescript/README.md',
        slug: 'typescript',
        label: 'TypeScript',
        title: 'TypeScript client',
      },
      { file: 'clients/python/README.md', slug: 'python', label: 'Python', title: 'Python client' },
      guide('cli', 'Command line'),
      guide('mcp', 'Tools for agents (MCP)'),
      guide('console', 'Console for people'),
    ],
  },
  {
    title: 'Mail',
    audience: 'users',
    guides: [
      guide('messages', 'Messages'),
      guide('reading-mail', 'Reading mail'),
      guide('injection'),
      guide('approval'),
      guide('webhooks'),
      guide('streams', 'Streams and waits'),
      guide('edge-cases'),
    ],
  },
  {
    title: 'API',
    audience: 'users',
    guides: [guide('api'), guide('errors'), guide('names')],
  },
  {
    title: 'Domains and delivery',
    audience: 'users',
    guides: [guide('domains'), guide('deliverability'), guide('metrics')],
  },
  {
    title: 'Organization',
    audience: 'users',
    guides: [
      guide('identity', 'People and keys'),
      guide('single-sign-on'),
      guide('usage'),
      guide('billing'),
      guide('retention', 'Retention'),
      guide('export'),
    ],
  },
  {
    title: 'Run the service',
    audience: 'operators',
    guides: [
      guide('operations'),
      guide('mail-servers'),
      guide('kubernetes'),
      guide('sizing'),
      guide('upgrades', 'Upgrades'),
      guide('backup', 'Backup'),
      guide('monitoring'),
      guide('outages'),
      guide('runbook/alerts'),
      guide('runbook/stuck-work'),
      guide('administration'),
      guide('notifications'),
      guide('security'),
    ],
  },
  {
    title: 'How it works',
    audience: 'contributors',
    guides: [
      guide('architecture', 'Architecture'),
      guide('workflows'),
      { file: 'CHANGELOG.md', slug: 'changelog', label: 'Changelog' },
    ],
  },
];

/** Files that guides link to, which the site serves as they are. */
export const PLAIN_FILES =
  /^docs\/(?:export|monitoring|receivers)\/[\w.-]+\.(?:py|ts|go|yml|json)$|^docs\/hand-over\.sh$/;
