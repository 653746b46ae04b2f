import { type AddressFilter, parseAddressFilter } from '../../domain/messages/message-filter.ts';
import { invalid } from '../../platform/errors.ts';
import { text } from '../schemas.ts';

/** A query parameter that names an address or a domain. */
export const addressFilter = (whose: string) =>
  text(254, {
    minLength: 1,
    description: `${whose}: an address (ada@people.example) or a domain (people.example); case-insensitive.`,
  });

/** @throws AppError `validation_error` for a name or other text, which would find nothing. */
export function readAddressFilter(name: string, value: string | undefined): AddressFilter | undefined {
  if (value === undefined) return undefined;
  const filter = parseAddressFilter(value);
  if (filter !== undefined) return filter;
  throw invalid(
    `/query/${name}`,
    'is neither an address nor a domain',
    `Use ${name}=ada@people.example or ${name}=people.example; q=${name}:ada finds names and parts of addresses in lists.`,
  );
}
