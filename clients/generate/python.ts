import type { Printer } from './files.ts';
import { printAnswers, printRequests } from './python/classes.ts';
import { printErrorCodes } from './python/errors.ts';
import { printResources } from './python/resources.ts';
import { TypeNames } from './python/types.ts';

const FOLDER = 'clients/python/src/agent_email';

/** The generated modules of the Python SDK. */
export const printPython: Printer = (model) => {
  const names = new TypeNames(model.types);
  return {
    [`${FOLDER}/types.py`]: printAnswers(model, names),
    [`${FOLDER}/params.py`]: printRequests(model, names),
    [`${FOLDER}/_resources.py`]: printResources(model, names, { isAsync: false }),
    [`${FOLDER}/_async_resources.py`]: printResources(model, names, { isAsync: true }),
    [`${FOLDER}/_error_codes.py`]: printErrorCodes(model.errorCodes),
  };
};
