import { Ajv, type ErrorObject, type ValidateFunction } from 'ajv';
import type { DataValidateFunction } from 'ajv/dist/types/index.js';
import type { TObject } from 'typebox';
import type { Problem } from '../domain/errors.ts';
import { type RuleName, RULES } from '../domain/rules.ts';

/** Fields as a browser sends them: text, or several texts of one name. */
export type Given = Readonly<Record<string, string | readonly string[]>>;
/** What is wrong, by field; what concerns the whole is under `''`. */
export type Problems = Readonly<Record<string, string>>;

/** A form or query string that was looked at. */
export interface Checked {
  /** The fields that are valid, with their types. */
  readonly values: Record<string, unknown>;
  readonly problems: Problems;
}

/** The fields of a form or a query string. */
export function readFields(text: string): Given {
  const fields: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of new URLSearchParams(text)) {
    const before = fields[name];
    // Browsers send line breaks as CRLF.
    const line = value.replaceAll('\r\n', '\n');
    fields[name] = before === undefined ? line : [before, line].flat();
  }
  return fields;
}

const ajv = makeAjv();
const compiled = new WeakMap<TObject, ValidateFunction>();

/**
 * Checks fields against a schema. A field that is left empty is one that is not given; where the schema wants a number,
 * a boolean or an array, the text is read as one. Fields that the schema does not name are left out.
 */
export function check(schema: TObject, given: Given): Checked {
  const values: Record<string, unknown> = {};
  for (const [name, property] of Object.entries(schema.properties)) {
    const value = Object.hasOwn(given, name) ? given[name] : undefined;
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

/** undefined for a field that was left empty. */
function read(type: string | undefined, value: string | readonly string[]): unknown {
  if (type === 'array') {
    const items = [value].flat().filter((item) => item !== '');
    return items.length > 0 ? items : undefined;
  }
  if (value === '') return undefined;
  if (type === 'boolean') return value === 'on' || value === 'true';
  if (type === 'integer' && typeof value === 'string' && /^-?\d{1,15}$/.test(value)) return Number(value);
  return value;
}

function makeAjv(): Ajv {
  const made = new Ajv({ allErrors: true, allowUnionTypes: true, verbose: true });
  made.addKeyword({
    keyword: 'x-rule',
    type: ['string', 'array'],
    schemaType: 'string',
    errors: 'full',
    compile: (name: RuleName) => {
      const rule = RULES[name] as (value: unknown) => Problem | undefined;
      const validate: DataValidateFunction = (value: unknown) => {
        const problem = rule(value);
        validate.errors = problem ? [{ keyword: 'x-rule', params: problem }] : [];
        return problem === undefined;
      };
      return validate;
    },
  });
  return made;
}

function fieldOf({ keyword, params, instancePath }: ErrorObject): string {
  const missing = (params as { missingProperty?: string }).missingProperty;
  if (keyword === 'required' && missing !== undefined) return missing;
  return instancePath.split('/')[1] ?? '';
}

/** What a broken schema keyword means, in words for people. */
function sentence({ keyword, params, parentSchema }: ErrorObject): string {
  const schema = (parentSchema ?? {}) as Partial<Record<'minLength' | 'maxLength' | 'minimum' | 'maximum', number>>;
  switch (keyword) {
    case 'x-rule':
      return (params as unknown as Problem).message;
    case 'required':
      return 'Please fill this in';
    case 'minLength':
    case 'maxLength':
      return `must be ${range(schema.minLength, schema.maxLength)} characters`;
    case 'minimum':
    case 'maximum':
      return `must be ${range(schema.minimum, schema.maximum)}`;
    case 'type':
      return `must be ${(params as { type: string }).type === 'integer' ? 'a whole number' : 'one value'}`;
    case 'enum':
    case 'const':
    case 'anyOf':
      return 'is not one of the choices';
    default:
      return 'is not valid';
  }
}

function range(min: number | undefined, max: number | undefined): string {
  if (max === undefined) return `at least ${min ?? 0}`;
  return min ? `${min} to ${max}` : `at most ${max}`;
}
