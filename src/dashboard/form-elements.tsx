import type { Children } from '@kitajs/html';
import type { Given } from './forms.ts';
import type { Filled, Html, Visit } from './page.ts';

export const BLANK: Filled = { given: {}, problems: {} };

interface FormProps {
  readonly visit: Visit;
  readonly action: string;
  readonly class?: string;
  readonly children: Children;
}

/** A POST form. It contains the organization that it was shown for: if another tab has changed that, the post is refused. */
export function Form({ visit, action, children, ...rest }: FormProps): Html {
  const organization = visit.session?.organization?.id;
  return (
    <form method="post" action={action} class={rest.class}>
      {organization !== undefined && <input type="hidden" name="_org" value={organization} />}
      {children}
    </form>
  );
}

/** The problem of the whole form. */
export function FormProblem({ filled }: { filled: Filled }): Html {
  const problem = filled.problems[''];
  if (problem === undefined) return '';
  return (
    <p class="problem whole" role="alert" safe>
      {problem}
    </p>
  );
}

export function valueOf(given: Given, name: string): string | undefined {
  const value = Object.hasOwn(given, name) ? given[name] : undefined;
  return typeof value === 'string' ? value : value?.[0];
}

interface FieldProps {
  readonly label: string;
  readonly name: string;
  readonly filled: Filled;
  readonly type?: 'text' | 'email' | 'password' | 'search' | 'url' | 'number' | 'datetime-local' | 'tel';
  /** The initial value. */
  readonly value?: string | undefined;
  readonly hint?: string;
  readonly required?: boolean;
  readonly autocomplete?: string;
  readonly placeholder?: string;
  readonly autofocus?: boolean;
  /** Makes it a textarea. */
  readonly rows?: number;
}

/** A field with label, hint and problem. It keeps its input, except passwords. */
export function Field(props: FieldProps): Html {
  const { label, name, filled, type = 'text', value, hint, rows, ...rest } = props;
  const { id, described, problem } = idsOf(name, filled, hint);
  const shown = type === 'password' ? undefined : (valueOf(filled.given, name) ?? value);
  const attributes = {
    id,
    name,
    'aria-describedby': described,
    'aria-invalid': problem === undefined ? undefined : 'true',
    required: rest.required,
    autocomplete: rest.autocomplete,
    placeholder: rest.placeholder,
    autofocus: rest.autofocus,
  } as const;
  return (
    <div class="field">
      <label for={id} safe>
        {label}
      </label>
      {rows === undefined ? (
        <input type={type} value={shown} {...attributes} />
      ) : (
        <textarea rows={String(rows)} {...attributes} safe>
          {shown ?? ''}
        </textarea>
      )}
      <Notes id={id} hint={hint} problem={problem} />
    </div>
  );
}

interface SelectProps extends Pick<FieldProps, 'label' | 'name' | 'filled' | 'value' | 'hint'> {
  readonly options: readonly (readonly [value: string, name: string])[];
}

/** The options of a filter; the empty one selects all. */
export function optionsOf(values: readonly string[], all = 'any'): SelectProps['options'] {
  return [['', all], ...values.map((value) => [value, value.replaceAll('_', ' ')] as const)];
}

export function Select({ label, name, filled, value, hint, options }: SelectProps): Html {
  const { id, described, problem } = idsOf(name, filled, hint);
  const chosen = valueOf(filled.given, name) ?? value;
  return (
    <div class="field">
      <label for={id} safe>
        {label}
      </label>
      <select
        id={id}
        name={name}
        aria-describedby={described}
        aria-invalid={problem === undefined ? undefined : 'true'}
      >
        {options.map(([option, text]) => (
          <option value={option} selected={option === chosen} safe>
            {text}
          </option>
        ))}
      </select>
      <Notes id={id} hint={hint} problem={problem} />
    </div>
  );
}

interface CheckboxProps {
  readonly label: string;
  /** Several boxes of one name make a list. */
  readonly name: string;
  readonly value: string;
  readonly given: Given;
  readonly checked?: boolean;
}

export function Checkbox({ label, name, value, given, checked = false }: CheckboxProps): Html {
  const id = `field-${name}-${value}`;
  const isBlank = Object.keys(given).length === 0;
  const isGiven = Object.hasOwn(given, name) && [given[name]].flat().includes(value);
  return (
    <div class="field check">
      <input type="checkbox" id={id} name={name} value={value} checked={isBlank ? checked : isGiven} />
      <label for={id} safe>
        {label}
      </label>
    </div>
  );
}

interface FileIntoProps {
  readonly label: string;
  /** The name of the textarea that it fills. */
  readonly field: string;
  readonly accept: string;
}

/** A script reads the file into the field; the file itself is not sent. */
export function FileInto({ label, field, accept }: FileIntoProps): Html {
  const id = `file-${field}`;
  return (
    <div class="field" data-script="" hidden>
      <label for={id} safe>
        {label}
      </label>
      <input type="file" id={id} accept={accept} data-into={`field-${field}`} />
    </div>
  );
}

function idsOf(name: string, filled: Filled, hint: string | undefined) {
  const id = `field-${name}`;
  const problem = Object.hasOwn(filled.problems, name) ? filled.problems[name] : undefined;
  const notes = [...(problem === undefined ? [] : [`${id}-problem`]), ...(hint === undefined ? [] : [`${id}-hint`])];
  return { id, problem, described: notes.length > 0 ? notes.join(' ') : undefined };
}

function Notes({ id, hint, problem }: { id: string; hint: string | undefined; problem: string | undefined }): Html {
  return (
    <>
      {problem !== undefined && (
        <p class="problem" id={`${id}-problem`} safe>
          {problem}
        </p>
      )}
      {hint !== undefined && (
        <p class="hint" id={`${id}-hint`} safe>
          {hint}
        </p>
      )}
    </>
  );
}

interface ConfirmProps {
  readonly visit: Visit;
  readonly action: string;
  /** Unique on the page. */
  readonly id: string;
  /** Verb and object, on both buttons. */
  readonly label: string;
  readonly question: string;
  /** Hidden fields. */
  readonly fields?: Readonly<Record<string, string>>;
  readonly small?: boolean;
}

/** A button that asks for confirmation, in a popover, which needs no script. */
export function Confirm({ visit, action, id, label, question, fields = {}, small = false }: ConfirmProps): Html {
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
            <input type="hidden" name={name} value={value} />
          ))}
          <button type="button" popovertarget={id} popovertargetaction="hide" autofocus>
            Cancel
          </button>
          <button class="danger" safe>
            {label}
          </button>
        </Form>
      </div>
    </>
  );
}

interface FiltersProps {
  readonly visit: Visit;
  readonly children: Children;
}

/** The filters of a list, in a GET form, so a filtered list has a URL. */
export function Filters({ visit, children }: FiltersProps): Html {
  const path = visit.url.split('?')[0] ?? '';
  const isFiltered = Object.entries(visit.given).some(([name, value]) => name !== 'cursor' && value !== '');
  return (
    <form method="get" action={path} class="filters" role="search">
      {children}
      <div class="row">
        <button>Filter</button>
        {isFiltered && <a href={path}>Clear</a>}
      </div>
    </form>
  );
}
