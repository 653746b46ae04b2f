/**
 * Time limits of tests are written for a fast machine, and apply this many times over: some machines take three times as
 * long, and a limit only has to tell a test that hangs.
 */
export const TIME_FACTOR = 3;
