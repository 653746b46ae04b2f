import { Answer, type Received } from './answer.ts';
import { ConnectionError } from './errors.ts';

export interface List<Item> {
  data: Item[];
  has_more: boolean;
  next_cursor: string | null;
}

export type FetchPage<Item> = (cursor: string) => Promise<Page<Item>>;

/** One page of a list. `for await (const item of page)` goes on with the pages after it. */
export class Page<Item> implements List<Item>, AsyncIterable<Item> {
  readonly data: Item[];
  readonly has_more: boolean;
  readonly next_cursor: string | null;
  readonly #fetch: FetchPage<Item>;

  constructor({ data, has_more, next_cursor }: List<Item>, fetch: FetchPage<Item>) {
    this.data = data;
    this.has_more = has_more;
    this.next_cursor = next_cursor;
    this.#fetch = fetch;
  }

  /** Null after the last page. */
  async next(): Promise<Page<Item> | null> {
    if (!this.has_more || this.next_cursor === null) return null;
    const page = await this.#fetch(this.next_cursor);
    if (page.has_more && page.next_cursor === this.next_cursor)
      throw new ConnectionError('The list does not advance: its page names itself as the next one.');
    return page;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of pagesFrom(this)) yield* page.data;
  }
}

/** A list: `await` gives its first page, `for await` all its items, one page in memory. */
export class PageAnswer<Item> extends Answer<Page<Item>> implements AsyncIterable<Item> {
  constructor(first: Promise<Received<List<Item>>>, fetch: FetchPage<Item>) {
    super(first.then((received) => ({ ...received, data: new Page(received.data, fetch) })));
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const page of this.pages()) yield* page.data;
  }

  async *pages(): AsyncGenerator<Page<Item>, void, undefined> {
    yield* pagesFrom(await this);
  }
}

async function* pagesFrom<Item>(first: Page<Item>): AsyncGenerator<Page<Item>, void, undefined> {
  for (let page: Page<Item> | null = first; page; page = await page.next()) yield page;
}
