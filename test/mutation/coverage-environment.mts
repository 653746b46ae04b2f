import { appendFileSync } from 'node:fs';
import NativeEnvironment from '../support/jest/native-environment.mts';

/** Mutants that ran, which instrumented modules count by test. */
interface Instrumented {
  currentTestId?: string;
  mutantCoverage?: { perTest: Record<string, Record<string, number>> };
}

/** Writes for each test file which mutants its tests reach: one line of JSON in `MUTANT_COVERAGE_FILE`. */
export default class CoverageEnvironment extends NativeEnvironment {
  private readonly file: string;
  private readonly instrumented: Instrumented;

  constructor(
    config: ConstructorParameters<typeof NativeEnvironment>[0],
    { testPath }: { testPath: string },
  ) {
    super(config);
    this.file = testPath;
    const holder = globalThis as typeof globalThis & { __stryker__?: Instrumented };
    holder.__stryker__ ??= {};
    this.instrumented = holder.__stryker__;
    this.instrumented.currentTestId = testPath;
  }

  override async teardown(): Promise<void> {
    const reached = Object.keys(this.instrumented.mutantCoverage?.perTest[this.file] ?? {});
    const target = process.env.MUTANT_COVERAGE_FILE;
    if (target) appendFileSync(target, `${JSON.stringify({ file: this.file, reached })}\n`);
    await super.teardown();
  }
}
