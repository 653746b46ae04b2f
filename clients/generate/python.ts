import type { Printer } from './files.ts';
import { nameMethods } from './method-names.ts';
import { printAnswers, printRequests } from './python/classes.ts';
import { printErrorCodes } from './python/errors.ts';
import { printResources } from './python/resources.ts';
import { snake } from './python/text.ts';
import { TypeNames } from './python/types.ts';

const FOLDER = 'clients/python/src/agent_email';

/** The generated modules of the Python SDK. */
export const printPython: Printer = (read) => {
  const model = nameMethods(read, (group, method) => `${snake(group.name)}.${snake(method.name)}`);
  const names = new TypeNames(model.types);
  return {
    [`${FOLDER}/types.py`]: printAnswers(model, names),
    [`${FOLDER}/params.py`]: printRequests(model, names),
    [`${FOLDER}/_resources.py`]: printResources(model, names, { isAsync: false }),
    [`${FOLDER}/_async_resources.py`]: printResources(model, names, { isAsync: true }),
    [`${FOLDER}/_error_codes.py`]: printErrorCodes(model.errorCodes),
  };
};
