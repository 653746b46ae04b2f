/** Codes have this many digits; years are ordinary words. */
const CODE = /^(?!(?:19|20)\d\d$)\d{4,10}$/;

/**
 * The ways to write the digits of a code: one word, or groups with spaces or hyphens between them (`482913`, `482 913`,
 * `482-913`). Empty if the digits do not look like a code.
 */
export function listCodeSpellings(digits: string): string[] {
  if (!CODE.test(digits)) return [];
  const groupings = listGroupSizes(digits.length).map((sizes) => split(digits, sizes));
  return [digits, ...groupings.flatMap((groups) => [groups.join(' '), groups.join('-')])];
}

/** Two halves, equal groups of two or three digits, and single digits. */
function listGroupSizes(length: number): number[][] {
  const half = Math.floor(length / 2);
  const halves =
    length % 2 === 0
      ? [[half, half]]
      : [
          [half, half + 1],
          [half + 1, half],
        ];
  const equal = [2, 3]
    .filter((size) => length % size === 0 && length / size > 2)
    .map((size) => new Array<number>(length / size).fill(size));
  const single = length <= 8 ? [new Array<number>(length).fill(1)] : [];
  const asPhoneNumber = length === 10 ? [[3, 3, 4]] : [];
  return [...halves, ...equal, ...single, ...asPhoneNumber];
}

function split(digits: string, sizes: number[]): string[] {
  let start = 0;
  return sizes.map((size) => {
    start += size;
    return digits.slice(start - size, start);
  });
}
