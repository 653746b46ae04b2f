import type { Model } from './model.ts';
import { printPython } from './python.ts';
import { printTypeScript } from './typescript.ts';

/** Prints the generated parts of one SDK: the text of each file, by its path in the repository. */
export type Printer = (model: Model) => Record<string, string>;

/** One for each language. */
const PRINTERS: Printer[] = [printTypeScript, printPython];

/** Every generated file of the SDKs. They are committed, and a test generates them again. */
export const printClients: Printer = (model) => Object.assign({}, ...PRINTERS.map((print) => print(model)));
