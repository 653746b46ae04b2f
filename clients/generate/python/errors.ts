import { header, quote } from './text.ts';

const className = (code: string): string =>
  `${code.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase()).replace(/Error$/, '')}Error`;

/** A class for each code that is known. */
export function printErrorCodes(codes: string[]): string {
  const classes = codes.map(
    (code) => `\n\nclass ${className(code)}(APIError):\n    """The code \`${code}\`."""\n`,
  );
  const entries = codes.map((code) => `    ${quote(code)}: ${className(code)},\n`);
  return `${header('A class for each code of an error. Errors with other codes are APIError itself.')}
from typing import Dict, Type

from ._errors import APIError

__all__ = [
${codes.map((code) => `    ${quote(className(code))},\n`).join('')}]
${classes.join('')}

ERRORS_BY_CODE: Dict[str, Type[APIError]] = {
${entries.join('')}}
`;
}
