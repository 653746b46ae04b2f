/** HTML elements whose content is never displayed as text. */
export const UNDISPLAYED_ELEMENTS: ReadonlySet<string> = new Set(
  'script style title template textarea iframe noembed xmp svg math'.split(' '),
);
