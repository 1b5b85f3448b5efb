import type { ErrorObject, ValidateFunction } from 'ajv';
import type { TObject } from 'typebox';
import { describeLimit, makeSchemaValidator, toWholeNumber } from '../intake/schema-validation.ts';
import { collectFields } from '../lib/form-fields.ts';

/** Fields as sent by a browser: text, or several texts of one name. */
export type FormInput = Readonly<Record<string, string | readonly string[]>>;
/** Problems by field; problems of the whole form are under `''`. */
export type Problems = Readonly<Record<string, string>>;

/** A validated form or query string. */
export interface Checked {
  /** The valid fields, converted to their types. */
  readonly values: Record<string, unknown>;
  readonly problems: Problems;
}

export function readFields(text: string): FormInput {
  const fields = Array.from(new URLSearchParams(text), ([name, value]) => {
    // Browsers send line breaks as CRLF.
    return [name, value.replaceAll('\r\n', '\n')] as const;
  });
  return collectFields(fields);
}

/** Returns the value of a field; the first one if there are several. */
export function valueOf(input: FormInput, name: string): string | undefined {
  const value = Object.hasOwn(input, name) ? input[name] : undefined;
  return typeof value === 'string' ? value : value?.[0];
}

/** Returns the query string of fields, without those that are empty; '' if all are. */
export function queryOf(input: FormInput): string {
  const query = new URLSearchParams();
  for (const [name, values] of Object.entries(input)) {
    for (const value of [values].flat()) if (value !== '') query.append(name, value);
  }
  const text = query.toString();
  return text === '' ? '' : `?${text}`;
}

const ajv = makeSchemaValidator({ allErrors: true });
const compiled = new WeakMap<TObject, ValidateFunction>();

/**
 * Validates fields against a schema. An empty field counts as missing. Text is converted if the schema requires a number, a
 * boolean or an array. Fields that are not in the schema are ignored.
 */
export function validateFields(schema: TObject, input: FormInput): Checked {
  const values: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    const value = Object.hasOwn(input, name) ? input[name] : undefined;
    const typed = value === undefined ? undefined : read((property as { type?: string }).type, value);
    if (typed !== undefined) values[name] = typed;
  }
  let validate = compiled.get(schema);
  if (!validate) compiled.set(schema, (validate = ajv.compile(schema)));
  if (validate(values)) return { values, problems: {} };
  const problems: Record<string, string> = {};
  for (const error of validate.errors ?? []) {
    const name = fieldOf(error);
    problems[name] ??= sentence(error);
    Reflect.deleteProperty(values, name);
  }
  return { values, problems };
}

/** Converts a field; returns undefined for an empty one. */
function read(type: string | undefined, value: string | readonly string[]): unknown {
  if (type === 'array') {
    const items = [value].flat().filter((item) => item !== '');
    return items.length > 0 ? items : undefined;
  }
  if (value === '') return undefined;
  if (type === 'boolean') return value === 'on' || value === 'true';
  if (type === 'integer' && typeof value === 'string') return toWholeNumber(value);
  return value;
}

function fieldOf({ keyword, params, instancePath }: ErrorObject): string {
  const missing = (params as { missingProperty?: string }).missingProperty;
  if (keyword === 'required' && missing !== undefined) return missing;
  return instancePath.split('/')[1] ?? '';
}

function sentence(error: ErrorObject): string {
  const { keyword, params } = error;
  switch (keyword) {
    case 'required':
      return 'Please fill this in';
    case 'type':
      return `must be ${(params as { type: string }).type === 'integer' ? 'a whole number' : 'one value'}`;
    case 'enum':
    case 'const':
    case 'anyOf':
      return 'is not one of the choices';
    default:
      return describeLimit(error)?.message ?? 'is not valid';
  }
}
