import type { ErrorObject } from 'ajv';
import type { TSchema } from 'typebox';
import { type Problem, ServiceError } from '../../domain/errors.ts';
import { describeLimit, makeSchemaValidator } from '../../intake/schema-validation.ts';
import { FAULTS_PER_RESPONSE } from '../../domain/limits.ts';
import { findSimilarName } from '../../lib/similar-name.ts';
import { shortParam } from './errors.ts';

/** The name of a schema's part in error messages: of a query string, a body, or an item of a long array. */
export type Noun = 'parameter' | 'field' | 'item';
/** Returns the faults of a value, one for each field, in no particular order behind the first. */
export type FindFaults = (value: unknown) => ServiceError[];

/** A request with more values reports only its first fault, because each of its values could cost a fault. */
const MAX_VALUES = 5_000;

export type Property = TSchema & { readonly type?: string; readonly 'x-sliced'?: boolean; readonly items?: TSchema };

export function schemaProperties(schema: TSchema): Record<string, Property> {
  return (schema as { properties?: Record<string, Property> }).properties ?? {};
}

/**
 * Creates a compiler of schemas. A compiled schema stops at the first fault of a value; only then it looks for the other faults.
 * @param uncounted a field whose values are checked by another schema
 */
export function makeFaultFinder(): (schema: TSchema, noun: Noun, uncounted?: string) => FindFaults {
  const [first, all] = [makeSchemaValidator(), makeSchemaValidator({ allErrors: true })];
  return (schema, noun, uncounted) => {
    const findFirst = first.compile(schema);
    let findAll: typeof findFirst | undefined;
    return (value) => {
      if (findFirst(value)) return [];
      const errors = findFirst.errors?.slice(0, 1) ?? [];
      if (!isLarge(value, uncounted)) {
        findAll ??= all.compile(schema);
        findAll(value);
        errors.push(...(findAll.errors ?? []));
      }
      return toFaults(errors, noun);
    };
  };
}

/** Returns true if a value contains more values than are checked for all of their faults. */
function isLarge(value: unknown, uncounted: string | undefined): boolean {
  const pending = [value];
  for (let count = 0; pending.length > 0; count++) {
    if (count > MAX_VALUES) return true;
    const each = pending.pop();
    if (typeof each !== 'object' || each === null) continue;
    for (const key in each) {
      if (pending.length > MAX_VALUES) return true;
      if (each !== value || key !== uncounted) pending.push((each as Record<string, unknown>)[key]);
    }
  }
  return false;
}

/** Keeps the first fault of each field: further ones, such as those of the other branches of a union, mostly follow from it. */
function toFaults(errors: readonly ErrorObject[], noun: Noun): ServiceError[] {
  const faults = new Map<string | undefined, ServiceError>();
  const unions = new Set<string>();
  for (const error of errors) {
    if (faults.size === FAULTS_PER_RESPONSE) break;
    const [union, branch] = error.schemaPath.split('/anyOf');
    if (branch !== undefined && unions.has(union as string)) continue;
    const fault = toError(error, noun);
    if (!faults.has(fault.param)) faults.set(fault.param, fault);
    if (branch !== undefined) unions.add(union as string);
  }
  return [...faults.values()];
}

function toError(error: ErrorObject, noun: Noun): ServiceError {
  const { path, message } = describeError(error, noun);
  const param = [...pointer(error.instancePath), ...(path === undefined ? [] : [path])].join('.');
  return new ServiceError('validation_error', message, param ? shortParam(param) : undefined);
}

/** Splits a JSON pointer (RFC 6901). */
function pointer(instancePath: string): string[] {
  return instancePath
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Converts a failed schema keyword into an error message. */
function describeError(error: ErrorObject, noun: Noun): Problem {
  const { keyword, params, instancePath, data } = error;
  const schema = error.parentSchema as TSchema;
  const details = params as Record<string, unknown>;
  switch (keyword) {
    case 'required':
      return { path: details['missingProperty'] as string, message: 'is required' };
    case 'additionalProperties':
      return unknownField(details['additionalProperty'] as string, schema, noun);
    case 'type':
      return {
        message:
          typeProblem(details['type'] as string | string[], noun === 'field' && instancePath === '') +
          wrapHint(data, schema),
      };
    case 'enum':
      return { message: `must be one of ${(details['allowedValues'] as unknown[]).filter(Boolean).join(', ')}` };
    case 'pattern':
      return { message: 'may contain only letters, digits, _ and -' };
    default:
      // Only the files of a batch member must be an empty array.
      if (keyword === 'maxItems' && details['limit'] === 0) return { message: 'is not accepted in a batch' };
      return describeLimit(error) ?? { message: 'is invalid' };
  }
}

function unknownField(name: string, schema: TSchema, noun: Noun): Problem {
  const similar = findSimilarName(name, Object.keys(schemaProperties(schema)));
  const hint = similar === undefined ? '' : `; did you mean ${similar}?`;
  return { path: name, message: `is not a known ${noun === 'parameter' ? noun : 'field'}${hint}` };
}

/** Returns a hint to wrap an array that was sent instead of an object with one array property. */
function wrapHint(data: unknown, schema: TSchema): string {
  const [name, ...others] = Object.entries(schemaProperties(schema)).flatMap(([key, { type }]) =>
    type === 'array' ? [key] : [],
  );
  return Array.isArray(data) && name !== undefined && others.length === 0 ? `; wrap the array: {"${name}": […]}` : '';
}

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: 'a string',
  array: 'an array',
  object: 'an object',
  boolean: 'true or false',
  integer: 'a whole number',
};

function typeProblem(types: string | string[], wholeBody: boolean): string {
  if (wholeBody) return 'the request body must be a JSON object';
  const names = [types].flat().flatMap((type) => TYPE_NAMES[type] ?? []);
  return `must be ${names.join(' or ')}`;
}
