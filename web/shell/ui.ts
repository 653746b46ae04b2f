import type { AppError } from '../../platform/errors.ts';
import { escapeHtml as html } from '../../platform/escape-html.ts';
import { barChart, type Chart, groupedBarChart, lineChart, type Tone } from './charts.ts';
import { formatTime } from './formats.ts';
import { fieldMessage, otherMessages, pageWords } from './words.ts';

/** What the parts of one page depend on. */
export interface UiContext {
  csrf: string;
  /** The rejection of the form on the page. */
  problem: AppError | undefined;
  /** What the person has entered in the rejected form. */
  form: Record<string, unknown>;
  /** Path to which the rejected form was posted. */
  action: string;
  /** Where the person goes on after signing in. */
  next: string;
  /** Staff read ids, too. */
  isStaff?: boolean;
  /** Names of the fields that have shown their error. */
  shown?: Set<string>;
  /** Before the ids of fields, where a page has the same field twice. */
  prefix?: string;
}

export interface FieldOptions {
  type?: string;
  value?: unknown;
  hint?: string;
  /** Further attributes of the input; `true` for one without a value. */
  [attribute: string]: unknown;
}

/** The value alone if it is its text. */
export type Choice = string | readonly [value: string, text: string];

export interface ConfirmOptions {
  /** Unique on the page. */
  id: string;
  button: string;
  title: string;
  text: string;
  action: string;
  /** Hidden fields. */
  fields?: Record<string, string>;
  /** HTML of inputs, made by other functions of `ui`. */
  inputs?: string;
  submit: string;
  danger?: boolean;
  /** What the button acts on, for those who hear its name alone. */
  of?: string;
  small?: boolean;
}

/** The parts of pages that templates print. Each function returns HTML whose values are escaped. */
export interface Ui extends ReturnType<typeof createParts> {
  /**
   * The same parts for one of several forms of a page: what was wrong with another one does not stand at its fields.
   *
   * @param path the form's action, without its query.
   * @param ids hidden values of the form, if several forms have the action.
   */
  of(path: string, ...ids: readonly (string | undefined)[]): Ui;
  /** Whether the form was rejected. A part of the page that hides it is shown open then. */
  isRejected: boolean;
}

export function createUi(context: UiContext): Ui {
  const { form, action, problem, shown = new Set() } = context;
  return {
    ...createParts({ ...context, shown }),
    isRejected: problem !== undefined,
    of(path, ...ids) {
      const given = ids.filter((id) => id !== undefined);
      const isRejected = action === path && given.every((id) => Object.values(form).includes(id));
      return createUi({
        ...context,
        shown,
        problem: isRejected ? problem : undefined,
        prefix: `${[path.slice(1).replaceAll('/', '-'), ...given].filter(Boolean).join('-')}-`,
      });
    },
  };
}

function createParts({
  csrf,
  problem,
  form,
  next,
  isStaff = false,
  shown = new Set(),
  prefix = '',
}: UiContext) {
  const csrfField = () => `<input type="hidden" name="csrf" value="${html(csrf)}">`;

  function enteredOr(name: string, value: unknown): string {
    const entered = problem ? form[name] : undefined;
    return String(entered ?? value ?? '');
  }

  function errorAt(name: string, label: string): string | undefined {
    const message = problem && fieldMessage(problem, name, label);
    if (message) shown.add(name);
    return message;
  }

  /** A label with its input, hint and error. `print` gets the attributes that connect them. */
  function labelled(
    name: string,
    label: string,
    { hint, id = `${prefix}field-${name}`, isOptional, ...options }: FieldOptions,
    print: (attributes: string) => string,
  ): string {
    const error = errorAt(name, label);
    const described = [hint ? `${id}-hint` : '', error ? `${id}-error` : ''].filter(Boolean).join(' ');
    const attributes = toAttributes({
      id,
      name,
      ...options,
      'aria-describedby': described || undefined,
      'aria-invalid': error ? 'true' : undefined,
    });
    return `<div class="field"><label for="${html(id)}">${html(label)}${(isOptional ?? !options.required) ? ' <small>optional</small>' : ''}</label>${print(attributes)}${
      hint ? `<p class="hint" id="${html(id)}-hint">${html(hint)}</p>` : ''
    }${error ? `<p class="field-error" id="${html(id)}-error">${html(error)}</p>` : ''}</div>`;
  }

  return {
    csrf: csrfField,

    /** What the page says about the rejection, beside what stands at the fields. To be printed after them. */
    rejection(): string {
      if (!problem) return '';
      const { text, remedy } = pageWords(problem, { next, isStaff });
      const others = otherMessages(problem, shown).map((message) => `<li>${html(message)}</li>`);
      const link =
        remedy?.href && `<p><a class="button" href="${html(remedy.href)}">${html(remedy.text)}</a></p>`;
      return (
        `<div class="problem" role="alert" tabindex="-1"><p>${html(text)}</p>` +
        (others.length > 0 ? `<ul>${others.join('')}</ul>` : '') +
        (link ?? (remedy ? `<p>${html(remedy.text)}</p>` : '')) +
        '</div>'
      );
    },

    field(name: string, label: string, { value, type = 'text', ...options }: FieldOptions = {}): string {
      // A password is typed again.
      const shown = type === 'password' ? '' : enteredOr(name, value);
      return labelled(
        name,
        label,
        options,
        (attributes) =>
          `<input type="${html(type)}"${shown === '' ? '' : ` value="${html(shown)}"`}${attributes}>`,
      );
    },

    textarea: (name: string, label: string, { value, ...options }: FieldOptions = {}): string =>
      labelled(
        name,
        label,
        { rows: 6, ...options },
        (attributes) => `<textarea${attributes}>\n${html(enteredOr(name, value))}</textarea>`,
      ),

    select(
      name: string,
      label: string,
      choices: readonly Choice[],
      { value, ...options }: FieldOptions = {},
    ): string {
      const selected = enteredOr(name, value);
      return labelled(
        name,
        label,
        // One choice is always selected, which may be the empty one of a filter.
        { isOptional: false, ...options },
        (attributes) =>
          `<select${attributes}>${choices
            .map((choice) => (typeof choice === 'string' ? [choice, choice] : choice))
            .map(
              ([each, text]) =>
                `<option value="${html(each)}"${each === selected ? ' selected' : ''}>${html(text)}</option>`,
            )
            .join('')}</select>`,
      );
    },

    /** Several checkboxes of one name have different values. */
    checkbox(
      name: string,
      label: string,
      { value = 'on', checked = false, hint, ...options }: FieldOptions = {},
    ): string {
      const entered = problem ? [form[name]].flat().includes(value) : checked;
      const error = errorAt(name, label);
      const id = `${prefix}field-${name}-error`;
      const wrong = error ? { 'aria-invalid': 'true', 'aria-describedby': id } : {};
      const attributes = toAttributes({ name, value, checked: entered, ...options, ...wrong });
      return `<label class="check"><input type="checkbox"${attributes}> <span>${html(label)}${
        hint ? ` <small>${html(hint)}</small>` : ''
      }</span></label>${error ? `<p class="field-error" id="${html(id)}">${html(error)}</p>` : ''}`;
    },

    /** A button that opens a dialog with a form. For everything that cannot be taken back. */
    confirm(options: ConfirmOptions): string {
      const {
        id,
        button,
        title,
        text,
        action,
        fields = {},
        inputs = '',
        submit,
        danger = true,
        small = false,
        of,
      } = options;
      const name = html(id);
      const hidden = Object.entries(fields)
        .map(([key, value]) => `<input type="hidden" name="${html(key)}" value="${html(value)}">`)
        .join('');
      return (
        `<button type="button" class="plain${danger ? ' destructive' : ''}${small ? ' small' : ''}" popovertarget="${name}">${html(button)}${of === undefined ? '' : `<span class="visually-hidden"> ${html(of)}</span>`}</button>` +
        `<div id="${name}" popover class="dialog" role="dialog" aria-labelledby="${name}-title">` +
        `<h2 id="${name}-title">${html(title)}</h2><p>${html(text)}</p>` +
        `<form method="post" action="${html(action)}">${csrfField()}${hidden}${inputs}` +
        `<div class="buttons"><button${danger ? ' class="danger"' : ''}>${html(submit)}</button>` +
        `<button type="button" class="plain" popovertarget="${name}" popovertargetaction="hide">Go back</button></div></form></div>`
      );
    },

    /** UTC; the browser shows the person's own time, relative to now. */
    time(date: Date | string | null | undefined): string {
      if (!date) return '';
      const at = new Date(date);
      return `<local-time><time datetime="${at.toISOString()}">${formatTime(at)} UTC</time></local-time>`;
    },

    date(date: Date | string | null | undefined): string {
      if (!date) return '';
      const iso = new Date(date).toISOString();
      return `<time datetime="${iso}">${iso.slice(0, 10)}</time>`;
    },

    badge: (tone: Tone, text: string): string => `<span class="badge ${tone}">${html(text)}</span>`,

    status: (value: string): string =>
      `<span class="badge ${STATUS_TONES[value] ?? 'neutral'}">${html(STATUS_WORDS[value] ?? value.replaceAll('_', ' '))}</span>`,

    copy: (text: string, label = 'Copy'): string =>
      `<copy-text><code>${html(text)}</code><button type="button" class="plain small" hidden aria-label="${html(label)}">Copy</button></copy-text>`,

    number: (value: number): string => value.toLocaleString('en-US'),
    percent: (ratio: number): string =>
      `${(ratio * 100).toLocaleString('en-US', { maximumFractionDigits: 1 })}%`,
    bytes,

    empty({
      title,
      text,
      href,
      action,
    }: {
      title: string;
      text: string;
      href?: string;
      action?: string;
    }): string {
      const button =
        href && action ? `<p><a class="button" href="${html(href)}">${html(action)}</a></p>` : '';
      return `<div class="empty"><h2>${html(title)}</h2><p>${html(text)}</p>${button}</div>`;
    },

    /** @param next path of the next page; empty on the last one. */
    more: (next: string | null | undefined, text = 'Older'): string =>
      next
        ? `<p class="more"><a class="button plain" rel="next" href="${html(next)}">${html(text)}</a></p>`
        : '',

    tabs: (
      tabs: readonly (readonly [href: string, text: string, isCurrent: boolean])[],
      label = 'Views',
    ): string =>
      `<nav class="tabs" aria-label="${html(label)}"><ul>${tabs
        .map(
          ([href, text, isCurrent]) =>
            `<li><a href="${html(href)}"${isCurrent ? ' aria-current="page"' : ''}>${html(text)}</a></li>`,
        )
        .join('')}</ul></nav>`,

    meter({ label, value, max }: { label: string; value: number; max: number }): string {
      const share = max === 0 ? 1 : value / max;
      const tone = share >= 1 ? 'bad' : share >= 0.8 ? 'warn' : 'good';
      return `<meter class="${tone}" min="0" max="${max}" value="${Math.min(value, max)}" aria-label="${html(label)}"></meter>`;
    },

    bars: (chart: Chart): string => barChart(chart),
    groupedBars: (chart: Chart): string => groupedBarChart(chart),
    line: (chart: Chart): string => lineChart(chart),
  };
}

function bytes(count: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  const exponent = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / 10));
  const value = count / 1024 ** exponent;
  return `${value.toLocaleString('en-US', { maximumFractionDigits: value < 10 ? 1 : 0 })} ${units[exponent]}`;
}

function toAttributes(attributes: Record<string, unknown>): string {
  return Object.entries(attributes)
    .filter(([, value]) => value !== undefined && value !== null && value !== false)
    .map(([name, value]) => (value === true ? ` ${name}` : ` ${name}="${html(value)}"`))
    .join('');
}

const STATUS_TONES: Record<string, Tone> = {
  active: 'good',
  accepted: 'info',
  bounced: 'bad',
  canceled: 'neutral',
  complained: 'bad',
  completed: 'good',
  deferred: 'warn',
  delivered: 'good',
  disabled: 'warn',
  expired: 'neutral',
  failed: 'bad',
  failing: 'bad',
  fail: 'bad',
  missing: 'bad',
  none: 'neutral',
  paid: 'good',
  partially_delivered: 'warn',
  pass: 'good',
  paused: 'warn',
  pending: 'info',
  pending_approval: 'warn',
  purging: 'warn',
  queued: 'info',
  received: 'info',
  rejected: 'bad',
  retrying: 'warn',
  revoked: 'neutral',
  scheduled: 'info',
  sending: 'info',
  sent: 'good',
  softfail: 'warn',
  spam: 'warn',
  succeeded: 'good',
  suspended: 'bad',
  verified: 'good',
};

const STATUS_WORDS: Record<string, string> = {
  pending_approval: 'waits for approval',
  partially_delivered: 'partly delivered',
  purging: 'being deleted',
};
