import { expect, test } from '@jest/globals';
import { testStack } from '../support/stack.ts';
import { connect } from '../support/test-app.ts';

test('the migrations make exactly the tables the entities describe', async () => {
  const owner = await connect(testStack().postgres.ownerUrl);
  try {
    const difference = await owner.orm.schema.getUpdateSchemaSQL({ wrap: false });
    // Functions are the migrations' own; the ORM knows none but those of triggers.
    const statements = difference
      .split('\n')
      .filter((line) => line.trim() !== '' && !line.startsWith('drop function'));
    expect(statements).toEqual([]);
  } finally {
    await owner.close();
  }
});
