import { expect, test } from '@jest/globals';
import { createUi } from '../../web/shell/ui.ts';

const ui = createUi({ csrf: 'token', problem: undefined, form: {}, action: '', next: '' });

test('a list of choices may stay at an empty one, which a browser would refuse if it were required', () => {
  const filter = ui.select('status', 'Status', [
    ['', 'Any'],
    ['sent', 'Sent'],
  ]);
  expect(filter).not.toMatch(/required|optional/);
  expect(ui.select('role', 'Role', [['', 'Choose one']], { required: true })).toContain(' required');
});

test('a field says that it is optional, and connects its hint', () => {
  expect(ui.field('note', 'Note', { hint: 'Shown to all.' })).toBe(
    '<div class="field"><label for="field-note">Note <small>optional</small></label>' +
      '<input type="text" id="field-note" name="note" aria-describedby="field-note-hint">' +
      '<p class="hint" id="field-note-hint">Shown to all.</p></div>',
  );
  expect(ui.field('note', 'Note', { required: true })).not.toContain('optional');
});
