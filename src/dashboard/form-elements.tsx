import type { Children } from '@kitajs/html';
import { escapeHtml } from '../lib/html.ts';
import { inWords } from './elements.tsx';
import { type FormInput, queryOf, valueOf } from './forms.ts';
import { type FormState, type Html, pathOf, type Visit } from './page.ts';

export const BLANK: FormState = { input: {}, problems: {} };

interface FormProps {
  readonly visit: Visit;
  readonly action: string;
  readonly class?: string;
  readonly children: Children;
}

/**
 * A POST form. It contains the organization for which it was shown; if another tab has changed that, posts that act on the
 * organization are refused.
 */
export function Form({ visit, action, children, ...rest }: FormProps): Html {
  const organization = visit.session?.organization?.id;
  return (
    <form method="post" action={action} class={rest.class}>
      {organization !== undefined && <input type="hidden" name="_org" value={organization} />}
      {children}
    </form>
  );
}

interface ProblemProps {
  /** Nothing is shown without a text. */
  readonly text: string | null | undefined;
  readonly id?: string;
  /** The problem concerns the whole form or message, not one field. */
  readonly isWhole?: boolean;
  /** Screen readers announce the problem when the page opens. */
  readonly isAlert?: boolean;
}

export function Problem({ text, id, isWhole = false, isAlert = false }: ProblemProps): Html {
  if (text == null) return '';
  return (
    <p class={['problem', isWhole && 'whole']} id={id} role={isAlert ? 'alert' : undefined} safe>
      {text}
    </p>
  );
}

export function FormProblem({ formState }: { formState: FormState }): Html {
  return <Problem text={formState.problems['']} isWhole isAlert />;
}

interface FieldOptions {
  readonly type?: 'text' | 'date' | 'email' | 'password' | 'search' | 'url' | 'number' | 'datetime-local' | 'tel';
  readonly value?: string | undefined;
  readonly hint?: string;
  readonly required?: boolean;
  readonly autocomplete?: string;
  readonly placeholder?: string;
  readonly autofocus?: boolean;
  /** The id of a datalist with suggestions. */
  readonly list?: string;
  /** Renders a textarea with this number of rows. */
  readonly rows?: number;
}

/** A field with its label, hint and problem. It keeps its input, except for passwords. */
export function field(formState: FormState, name: string, label: string, options: FieldOptions = {}): Html {
  const { type = 'text', value, hint, rows, required, autocomplete, placeholder, autofocus, list } = options;
  const shared = attributesOf(name, formState, hint);
  const attributes = { ...shared, required, autocomplete, placeholder, autofocus: shared.autofocus || autofocus };
  const shown = type === 'password' ? undefined : (valueOf(formState.input, name) ?? value);
  return (
    <Labelled label={label} name={name} formState={formState} hint={hint}>
      {rows === undefined ? (
        <input type={type} value={shown === undefined ? undefined : escapeHtml(shown)} list={list} {...attributes} />
      ) : (
        <textarea rows={String(rows)} {...attributes} safe>
          {shown ?? ''}
        </textarea>
      )}
    </Labelled>
  );
}

/** The user's current password. The hidden address lets password managers find it. */
export function currentPasswordField(formState: FormState, email: string, autofocus = false): Html {
  const options = { type: 'password', autocomplete: 'current-password', required: true, autofocus } as const;
  return (
    <>
      <input type="text" value={escapeHtml(email)} autocomplete="username" readonly hidden />
      {field(formState, 'current', 'Current password', options)}
    </>
  );
}

/** A field for the name of a time zone; a script fills its suggestions. At most one per page. */
export function timeZoneField(
  formState: FormState,
  value: string,
  { hint, required = false }: Pick<FieldOptions, 'hint' | 'required'> = {},
): Html {
  const options = { value, required, list: 'time-zones', autocomplete: 'off', ...(hint !== undefined && { hint }) };
  return (
    <>
      {field(formState, 'time_zone', 'Time zone', options)}
      <datalist id="time-zones" />
    </>
  );
}

/** The options of a `select`. */
export type Options = readonly (readonly [value: string, name: string])[];

/** Returns the options of a filter; the empty value selects all. */
export function optionsOf(values: readonly string[]): Options {
  return [['', 'Any'], ...values.map((value) => [value, inWords(value)] as const)];
}

/** @param value the initial value */
export function select(formState: FormState, name: string, label: string, options: Options, value?: string): Html {
  const chosen = valueOf(formState.input, name) ?? value;
  return (
    <Labelled label={label} name={name} formState={formState}>
      <select {...attributesOf(name, formState)}>
        {options.map(([option, text]) => (
          <option value={escapeHtml(option)} selected={option === chosen} safe>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

interface CheckboxProps {
  readonly label: string;
  /** Checkboxes with the same name form a list. */
  readonly name: string;
  readonly value: string;
  readonly input: FormInput;
  readonly checked?: boolean;
}

export function Checkbox({ label, name, value, input, checked = false }: CheckboxProps): Html {
  const id = `field-${name}-${value}`;
  const isBlank = Object.keys(input).length === 0;
  const isSubmitted = Object.hasOwn(input, name) && [input[name]].flat().includes(value);
  return (
    <div class="field check">
      <input type="checkbox" id={id} name={name} value={escapeHtml(value)} checked={isBlank ? checked : isSubmitted} />
      <label for={id} safe>
        {label}
      </label>
    </div>
  );
}

interface FilterMenuProps {
  readonly label: string;
  /** The names of the selected values. */
  readonly chosen: readonly string[];
  readonly whenEmpty: string;
  readonly isOpen?: boolean;
  readonly children: Children;
}

/** A filter whose fields are in a dropdown menu. */
export function FilterMenu({ label, chosen, whenEmpty, isOpen = false, children }: FilterMenuProps): Html {
  return (
    <div class="field">
      <span class="label" aria-hidden="true" safe>
        {label}
      </span>
      <details class="menu choices" open={isOpen}>
        <summary>
          <span class="hidden" safe>{`${label}: `}</span>
          <span safe>{chosen.join(', ') || whenEmpty}</span>
        </summary>
        <div role="group" aria-label={label}>
          {children}
        </div>
      </details>
    </div>
  );
}

/** A filter with several alternatives. None selected means any. */
export function choices(formState: FormState, name: string, label: string, options: Options): Html {
  const values = [formState.input[name] ?? []].flat();
  const chosen = options.filter(([value]) => values.includes(value)).map(([, text]) => text);
  const problem = problemOf(name, formState);
  return (
    <FilterMenu label={label} chosen={chosen} whenEmpty="Any" isOpen={problem !== undefined}>
      <Problem text={problem} id={`field-${name}-problem`} />
      {options.map(([value, text]) => (
        <Checkbox label={text} name={name} value={value} input={formState.input} />
      ))}
    </FilterMenu>
  );
}

/** A file field. A script reads the file into the textarea `into`; the form does not contain the file. */
export function FileInto({ label, into, accept }: { label: string; into: string; accept: string }): Html {
  const id = `file-${into}`;
  return (
    <div class="field" data-script="" hidden>
      <label for={id} safe>
        {label}
      </label>
      <input type="file" id={id} accept={accept} data-into={`field-${into}`} />
    </div>
  );
}

function problemOf(name: string, { problems }: FormState): string | undefined {
  return Object.hasOwn(problems, name) ? problems[name] : undefined;
}

function attributesOf(name: string, formState: FormState, hint?: string) {
  const id = `field-${name}`;
  const hasProblem = problemOf(name, formState) !== undefined;
  const notes = [hasProblem && `${id}-problem`, hint !== undefined && `${id}-hint`].filter(Boolean).join(' ');
  return {
    id,
    name,
    'aria-describedby': notes || undefined,
    'aria-invalid': hasProblem ? 'true' : undefined,
    // Browsers focus the first of several.
    autofocus: hasProblem,
  } as const;
}

interface LabelledProps {
  readonly label: string;
  readonly name: string;
  readonly formState: FormState;
  readonly hint?: string | undefined;
  readonly children: Children;
}

function Labelled({ label, name, formState, hint, children }: LabelledProps): Html {
  const id = `field-${name}`;
  return (
    <div class="field">
      <label for={id} safe>
        {label}
      </label>
      {children}
      <Problem text={problemOf(name, formState)} id={`${id}-problem`} />
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`} safe>
          {hint}
        </p>
      )}
    </div>
  );
}

interface Confirmation {
  readonly action: string;
  /** Unique on the page. */
  readonly id: string;
  readonly question: string;
  readonly fields?: Readonly<Record<string, string>>;
  readonly small?: boolean;
  /** The label of the button that changes nothing. An action that cancels something needs a label other than "Cancel". */
  readonly keep?: string;
  /** A second button of the form, which sends a field of its own. */
  readonly other?: { readonly label: string; readonly name: string; readonly value: string };
}

/**
 * A button that asks for confirmation in a popover, which needs no script.
 * @param label verb and object, the label of both buttons
 */
export function confirm(visit: Visit, label: string, confirmation: Confirmation): Html {
  const { action, id, question, fields = {}, small = false, keep = 'Cancel', other } = confirmation;
  return (
    <>
      <button type="button" class={['danger', small && 'small']} popovertarget={id}>
        <span safe>{label}</span>…
      </button>
      <div popover="auto" id={id} class="confirm" role="dialog" aria-labelledby={`${id}-question`}>
        <p id={`${id}-question`} safe>
          {question}
        </p>
        <Form visit={visit} action={action} class="row">
          {Object.entries(fields).map(([name, value]) => (
            <input type="hidden" name={name} value={escapeHtml(value)} />
          ))}
          <button type="button" popovertarget={id} popovertargetaction="hide" autofocus safe>
            {keep}
          </button>
          <button class="danger" safe>
            {label}
          </button>
          {other !== undefined && (
            <button class="danger" name={other.name} value={escapeHtml(other.value)} safe>
              {other.label}
            </button>
          )}
        </Form>
      </div>
    </>
  );
}

/** The filters of a list. They are a GET form, so that a filtered list has a URL. */
export function Filters({ visit, label, children }: { visit: Visit; label?: string; children: Children }): Html {
  const path = pathOf(visit);
  const isFiltered = queryOf({ ...visit.input, cursor: '', before: '' }) !== '';
  return (
    <form method="get" action={path} class="filters" role="search" aria-label={label ?? 'Filter this list'}>
      {children}
      <div class="row">
        <button>Filter</button>
        {isFiltered && <a href={path}>Clear</a>}
      </div>
    </form>
  );
}
