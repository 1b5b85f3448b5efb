import type { ErrorObject } from 'ajv';
import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { type Problem, ServiceError } from '../../domain/errors.ts';
import { describeLimit, makeSchemaValidator, toWholeNumber } from '../../intake/schema-validation.ts';
import { startTimeSlices } from '../../intake/time-slices.ts';
import { shortParam } from './errors.ts';

/** The name of a schema's part in error messages: of a query string, a body, or an item of a long array. */
type Noun = 'parameter' | 'field' | 'item';

/**
 * Compiles schemas for request bodies, parameters and query strings. Values are not coerced, except whole numbers in query
 * strings, which contain only text. Unknown fields are errors, so that callers notice mistakes.
 */
export function makeValidatorCompiler(): FastifySchemaCompiler<TSchema> {
  const ajv = makeSchemaValidator();
  const compile = (schema: TSchema, noun: Noun) => {
    const validate = ajv.compile(schema);
    return (value: unknown) => (validate(value) ? undefined : toError(validate.errors?.[0], noun));
  };
  return ({ schema, httpPart }) => {
    // `idempotency.ts` checks Idempotency-Key before the fields of the body.
    if (httpPart === 'headers') return () => true;
    const long = Object.entries(schemaProperties(schema)).find(([, property]) => property['x-sliced']);
    if (long) return validateInSlices(schema, ...long, compile);
    const isQuery = httpPart === 'querystring';
    const problemOf = compile(schema, isQuery ? 'parameter' : 'field');
    return (value: unknown) => {
      if (isQuery) readNumbers(schema, value as Record<string, unknown>);
      const error = problemOf(value);
      return error ? { error } : true;
    };
  };
}

function readNumbers(schema: TSchema, query: Record<string, unknown>): void {
  for (const [name, { type }] of Object.entries(schemaProperties(schema))) {
    const text = query[name];
    if (type === 'integer' && typeof text === 'string') query[name] = toWholeNumber(text);
  }
}

type Property = TSchema & { readonly type?: string; readonly 'x-sliced'?: boolean; readonly items?: TSchema };

function schemaProperties(schema: TSchema): Record<string, Property> {
  return (schema as { properties?: Record<string, Property> }).properties ?? {};
}

/** An error in one item of a long array. The items before it are valid. */
export interface ItemError extends ServiceError {
  readonly itemIndex: number;
}

/** Validates the body without the items of one array, then each item. Yields to other requests in between. */
function validateInSlices(
  schema: TSchema,
  name: string,
  { items = {}, ...property }: Property,
  compile: (schema: TSchema, noun: Noun) => (value: unknown) => ServiceError | undefined,
) {
  const outer = compile({ ...schema, properties: { ...schemaProperties(schema), [name]: property } }, 'field');
  const inner = compile(items, 'item');
  const validate = async (value: unknown): Promise<true> => {
    const error = outer(value);
    if (error) throw error;
    const yieldIfDue = startTimeSlices();
    for (const [index, item] of (value as Record<string, unknown[]>)[name]?.entries() ?? []) {
      const problem = inner(item);
      if (problem) throw Object.assign(problem.within(`${name}.${index}`), { itemIndex: index }) satisfies ItemError;
      await yieldIfDue();
    }
    return true;
  };
  // Fastify accepts promises, but its types require a type that only Fastify declares.
  return validate as unknown as ReturnType<FastifySchemaCompiler<TSchema>>;
}

function toError(error: ErrorObject | undefined, noun: Noun): ServiceError {
  if (!error) return new ServiceError('validation_error', 'the request is invalid');
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
  const { keyword, params, parentSchema, instancePath, data } = error;
  const details = params as Record<string, unknown>;
  switch (keyword) {
    case 'required':
      return { path: details['missingProperty'] as string, message: 'is required' };
    case 'additionalProperties':
      return {
        path: details['additionalProperty'] as string,
        message: `is not a known ${noun === 'parameter' ? noun : 'field'}`,
      };
    case 'type':
      return {
        message:
          typeProblem(details['type'] as string | string[], noun === 'field' && instancePath === '') +
          wrapHint(data, parentSchema as TSchema),
      };
    case 'enum':
      return { message: `must be one of ${(details['allowedValues'] as unknown[]).filter(Boolean).join(', ')}` };
    case 'not':
      return { message: 'is not accepted in a batch' };
    case 'pattern':
      return { message: 'may contain only letters, digits, _ and -' };
    default:
      return describeLimit(error) ?? { message: 'is invalid' };
  }
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
