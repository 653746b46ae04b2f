/** Replaces the types of the package, which would add browser types to the whole project. */
declare module '@xmldom/xmldom' {
  export class DOMParser {
    constructor(options: {
      locator: object;
      errorHandler: Record<'warning' | 'error' | 'fatalError', (message: string) => void>;
    });
    parseFromString(xml: string, mimeType: string): { documentElement: unknown } | undefined;
  }
}
